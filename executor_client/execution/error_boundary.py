"""Error boundary of loops: an unexpected error is logged and does not end the thread."""

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


def survive(step: Callable[[], T], otherwise: T, what: str) -> T:
    """Run one step of a loop; on an unexpected error log it and return ``otherwise``."""
    try:
        return step()
    except Exception:
        logger.exception("%s failed", what)
        return otherwise
