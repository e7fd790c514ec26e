"""Error boundary of loops: logs an unexpected error instead of ending the thread."""

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


def survive(step: Callable[[], T], fallback: T, step_name: str) -> T:
    """Run one step of a loop; on an unexpected error log it and return ``fallback``."""
    try:
        return step()
    except Exception:
        logger.exception("%s failed", step_name)
        return fallback
