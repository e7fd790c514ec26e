"""Values and fills of the tests of parameters."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from app.domain.parameters.template import parse
from app.domain.parameters.values import GivenRun, Values

#: a Friday: 20 November 2026, 08:30:15.250 in Shanghai
AT_MS = 1_795_134_615_250


def values(**changes: Any) -> Values:
    """Return the values of a run, some of them changed."""
    given: dict[str, Any] = {
        "logical_ms": AT_MS,
        "time_zone": "Asia/Shanghai",
        "job_id": 7,
        "job_name": "Close the books",
        "run_id": 6317,
    }
    return Values(**{**given, **changes})


def filled(text: str, **changes: Any) -> str:
    """Return a filled text; a secret in it is still a placeholder."""
    return parse(text).fill(values(**changes)).text


def with_result(result: str | None, **changes: Any) -> dict[str, Any]:
    """Return values with a parent that has a result."""
    return {"parent": GivenRun(41, result, **changes)}


def local_ms(text: str, zone: str, fold: int = 0) -> int:
    """Return the instant of a local time."""
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return int(local.timestamp()) * 1000
