"""What every endless thread of the executor wraps its steps in."""

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)


def survive(step: Callable[[], T], otherwise: T, what: str) -> T:
    """Take one step of a loop; an error nobody foresaw is logged, once each time, and does not end the thread."""
    try:
        return step()
    except Exception:
        logger.exception("%s failed", what)
        return otherwise
