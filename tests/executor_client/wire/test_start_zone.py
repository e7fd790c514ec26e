"""Time zone of stamps and log folders: that in which the process was started."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from executor_client import HandlerRegistry, context
from executor_client.wire import start_zone
from executor_client.wire.clock import local_stamp, now_ms
from executor_client.wire.start_zone import zone_of
from tests.support.executor_client import T0, Caller
from tests.support.truth_table import truth_table

Result = Callable[[int], tuple[int, str | None]]
ROOT = Path(__file__).resolve().parents[2]
CHANGE = "import os, time; os.environ['TZ'] = 'America/Chicago'; time.tzset()\n"
#: prints the stamp and the log of an instant
SHOW = f"""
from executor_client.wire.clock import local_stamp
from executor_client.logs.files import log_name
print(local_stamp({T0}), log_name(7, {T0}))
"""
#: of a program that writes its name over the environment
HIDE = """
from pathlib import Path
from executor_client.wire import start_zone
start_zone._ENVIRONMENT = Path("/dev/null")
"""


@pytest.fixture
def zone_of_django(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Another zone than at the start, as settings of Django set it."""
    start_zone.start_tz()
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "America/Chicago")
        time.tzset()
        yield "America/Chicago"
    time.tzset()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import executor_client\n" + CHANGE + SHOW, id="after the import"),
        pytest.param(CHANGE + SHOW, id="before the import"),
        pytest.param(HIDE + SHOW + CHANGE + SHOW, id="after the start, where it cannot be read"),
    ],
)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Pacific/Kiritimati", "2024-05-01 17:04:05 2024-05-01/7.log"),
        ("<-11>11", "2024-04-30 16:04:05 2024-04-30/7.log"),
    ],
)
def test_a_zone_that_is_set_later_changes_no_stamp(program: str, name: str, expected: str) -> None:
    environment = {**os.environ, "TZ": name, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert set(ended.stdout.splitlines()) == {expected}


@truth_table(
    "name, hours",
    [
        ("Asia/Tokyo", 9),
        (":Asia/Tokyo", 9),
        ("/usr/share/zoneinfo/Asia/Tokyo", 9),
        ("CST-8", 8),
        ("EST5EDT,M3.2.0,M11.1.0", -4),
        ("", 0),
        ("nonsense", 0),
        ("../passwd", 0),
        ("/nowhere", 0),
    ],
)
def test_a_zone_is_named_as_for_the_c_library(name: str, hours: int) -> None:
    assert datetime.fromtimestamp(T0 / 1000, zone_of(name)).utcoffset() == timedelta(hours=hours)


def reports() -> str:
    context.log("stamped")
    return json.dumps([os.environ.get("TZ"), time.tzname[0]])


@pytest.mark.parametrize("process", [False, True])
def test_a_handler_has_the_later_zone_and_its_log_that_of_the_start(
    caller: Caller, handlers: HandlerRegistry, result: Result, zone_of_django: str, process: bool
) -> None:
    handlers.job("h", process=process)(reports)
    before = local_stamp(now_ms())
    caller.accepted(1, executorHandler="h")
    assert json.loads(result(1)[1] or "") == [zone_of_django, "CST"]
    (line,) = [line for line in caller.log(1)["logContent"].splitlines() if "stamped" in line]
    assert before <= line[: len(before)] <= local_stamp(now_ms())
