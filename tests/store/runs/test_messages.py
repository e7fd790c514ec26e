"""Parts of the messages that lists read."""

from app.database.engine import read_scope
from app.domain.runs.reason import Messages
from app.services.runs.reasons import find_reasons
from app.store.runs.messages import END, START, find_messages
from tests.support.factories import make_job, make_log
from tests.support.statements import statements


def test_long_messages_are_read_in_part_and_short_ones_whole(database: str) -> None:
    job = make_job()
    long = "开" * 70 + "x" * 9_000 + "尾"
    first = make_log(job, trigger_msg=long, handle_msg=long)
    short = make_log(job, trigger_msg="开尾", handle_msg=None)
    with read_scope() as session:
        found = find_messages(session, [first.id, short.id, 999_999])
    assert found == {
        first.id: Messages(long[-END:], long[:START], long[-END:]),
        short.id: Messages("开尾", "", ""),
    }


def test_runs_without_a_reason_cost_no_statement(database: str) -> None:
    job = make_job()
    runs = [make_log(job, trigger_code=200, handle_code=code) for code in (0, 200)]
    with read_scope() as session, statements() as executed:
        assert find_reasons(session, runs) == {}
    assert executed == []
