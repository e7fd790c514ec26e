"""Helpers of the tests of domain schedules, for all that need them."""

from datetime import datetime
from zoneinfo import ZoneInfo

SHANGHAI, NEW_YORK, BERLIN, LORD_HOWE = (
    "Asia/Shanghai",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
)


def ms(local: str, time_zone: str = SHANGHAI, fold: int = 0) -> int:
    """Return the instant of a local time."""
    return int(
        datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(time_zone), fold=fold).timestamp() * 1000
    )
