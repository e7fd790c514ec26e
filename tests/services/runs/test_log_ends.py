"""End of a long log: of executors that return it at once, and of those that send all lines from one on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain.access.permissions import system_actor
from app.errors import ExecutorUnreachable
from app.executors.calls import LOG_REPLY_MAX
from app.executors.gateway import Gateway
from app.models.group import Group
from app.models.log import JobLog
from app.models.registry import Registration
from app.services.executors.callers import Caller
from app.services.runs.log_ends import fetch_end, fetch_range
from executor_client.logs.files import log_file
from executor_client.logs.reading import LogReader
from tests.support.executors import NETWORKS
from tests.support.factories import save
from tests.support.fake_executor import Answer, Request
from tests.support.log_executor import LogExecutor

pytestmark = pytest.mark.usefixtures("database")

NOW = 1_714_530_000_000
ADMIN = system_actor("test")
CALLER = Caller(Gateway(NETWORKS), ("the-global-token-1",))
PADDING = "x" * 50
#: every hundredth line of a log of 2 MB is an error with a stack
LINES = [
    f"2026-11-20 08:00:00 [a.py:12] {'ERROR' if number % 100 == 0 else 'INFO'} order {number:06d} {PADDING}"
    for number in range(1, 20_001)
]


@pytest.fixture
def executor() -> Iterator[LogExecutor]:
    with LogExecutor(LINES) as running:
        yield running


def add_run(executor: LogExecutor, *, capabilities: str = "", handle_code: int = 200) -> int:
    group = save(Group(app_name="some-app", title="Some", address_list=executor.address))
    if capabilities:
        row = {"registry_group": "EXECUTOR", "registry_key": "some-app", "registry_value": executor.address}
        save(Registration(**row, boot_id="b1", capabilities=capabilities))
    values = {"executor_address": executor.address, "trigger_time": NOW, "trigger_code": 200}
    return save(JobLog(job_group=group.id, job_id=1, **values, handle_code=handle_code)).id


def test_the_end_of_a_log_of_java_is_read_forward(executor: LogExecutor) -> None:
    log_id = add_run(executor)
    end = fetch_end(log_id, 1, 1_000, actor=ADMIN, caller=CALLER)
    assert (end.first, end.last, end.errors, end.has_more) == (19_001, 20_000, 200, False)
    assert end.lines == LINES[-1_000:]
    assert end.piece.is_end
    size = sum(len(line) + 1 for line in LINES)
    assert len(executor.requests) <= size // LOG_REPLY_MAX + 3


def test_a_log_that_takes_too_long_is_continued(
    executor: LogExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_id = add_run(executor)
    monkeypatch.setattr("app.services.runs.log_ends.READ_S", 0.0)
    end = fetch_end(log_id, 1, 1_000, actor=ADMIN, caller=CALLER)
    assert end.has_more
    assert end.lines == LINES[end.first - 1 : end.last]
    monkeypatch.undo()
    rest = fetch_end(log_id, end.last + 1, 1_000, actor=ADMIN, caller=CALLER)
    assert (rest.last, rest.lines) == (20_000, LINES[-1_000:])
    assert (end.errors or 0) + (rest.errors or 0) == 200


def test_an_executor_that_can_returns_the_end_at_once(executor: LogExecutor, tmp_path: Path) -> None:
    path = log_file(tmp_path, log_id := add_run(executor, capabilities="durable-dedup,last-lines"), NOW)
    path.parent.mkdir()
    path.write_text("".join(f"{line}\n" for line in LINES))
    executor.reader = LogReader(tmp_path)
    end = fetch_end(log_id, 1, 1_000, actor=ADMIN, caller=CALLER)
    assert (end.first, end.last, end.lines) == (19_001, 20_000, LINES[-1_000:])
    assert (end.errors, end.has_more, len(executor.requests)) == (None, False, 1)
    assert executor.requests[0].json["lastLines"] == 1_000
    rest = fetch_end(log_id, 20_001, 1_000, actor=ADMIN, caller=CALLER)
    assert (rest.lines, rest.piece.is_end) == ([], True)


@pytest.mark.parametrize("capabilities", ["", "last-lines"])
def test_a_range_ends_at_its_last_line(executor: LogExecutor, tmp_path: Path, capabilities: str) -> None:
    log_id = add_run(executor, capabilities=capabilities)
    if capabilities:
        path = log_file(tmp_path, log_id, NOW)
        path.parent.mkdir()
        path.write_text("".join(f"{line}\n" for line in LINES))
        executor.reader = LogReader(tmp_path)
    part = fetch_range(log_id, 4_001, 14_000, actor=ADMIN, caller=CALLER)
    assert (part.first, part.last, part.has_more) == (4_001, 14_000, False)
    assert part.lines == LINES[4_000:14_000]


def test_lines_that_were_read_are_returned_without_the_rest(executor: LogExecutor) -> None:
    log_id = add_run(executor)
    whole = executor.answer_to

    def answer_once(request: Request) -> Answer:
        return whole(request) if len(executor.requests) == 0 else Answer.json(500, msg="gone")

    executor.answer_to = answer_once  # type: ignore[method-assign]
    end = fetch_end(log_id, 1, 1_000, actor=ADMIN, caller=CALLER)
    assert (end.has_more, len(end.lines)) == (True, 1_000)
    with pytest.raises(ExecutorUnreachable):
        fetch_end(log_id, end.last + 1, 1_000, actor=ADMIN, caller=CALLER)
