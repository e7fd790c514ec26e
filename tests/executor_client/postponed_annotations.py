"""A handler and a dataclass whose annotations are text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum


class Urgency(Enum):
    """Choice."""

    HIGH = "high"


@dataclass
class Note:
    """Base of a dataclass in another module."""

    urgency: Urgency


def sync(day: date, limit: Decimal = Decimal(2), **factors: Decimal) -> None:
    """Never called."""
