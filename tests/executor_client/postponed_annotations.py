"""A handler whose annotations are text."""

from __future__ import annotations

from datetime import date
from decimal import Decimal


def sync(day: date, limit: Decimal = Decimal(2), **factors: Decimal) -> None:
    """Never called."""
