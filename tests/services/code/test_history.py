"""What applies changed of a job besides its fields."""

from typing import Any

import pytest

from app.database.engine import read_scope
from app.models.job import Job
from app.services.code.history import CodeChange, list_code_changes
from tests.services.code.steps import CLOSE, NIGHTLY, apply
from tests.support.code import undo
from tests.support.factories import T0, make_group, only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")


def code_changes(job_id: int) -> list[CodeChange]:
    with read_scope() as session:
        return list_code_changes(session, job_id, limit=9)


def write(source: str, **members: Any) -> int:
    return apply({"jobs": {"orders/close": CLOSE | NIGHTLY | members}}, source=source).apply_id


@every_database
def test_switches_of_applies_and_of_their_undoing_are_listed() -> None:
    make_group(app_name="orders")
    write("infra@1", enabled=True)
    write("infra@2", enabled=True, timeout_s=9)
    last = write("infra@3", enabled=False, timeout_s=10)
    undo(last, now_ms=T0 + 5)
    job_id = only_row(Job).id
    assert code_changes(job_id) == [
        CodeChange(T0, "ci", "apply infra@3", {"enabled": (True, False)}),
        CodeChange(T0, "ci", "apply infra@1", {"enabled": (None, True)}),
        CodeChange(T0 + 5, "ci", f"undo of apply {last}", {"enabled": (False, True)}),
    ]
    assert code_changes(job_id + 1) == []


def test_code_is_listed_by_length() -> None:
    make_group(app_name="orders")
    for source in ("echo 1\n", "echo 1\necho 2\n"):
        code = {"language": "GLUE_SHELL", "source": source}
        apply({"jobs": {"orders/mail": {"description": "Mail", "owner": "ann", "code": code}}})
    (changed, added) = code_changes(only_row(Job).id)
    assert [each["lines"] if each else None for each in changed.changes["code"]] == [1, 2]
    assert [each["lines"] if each else None for each in added.changes["code"]] == [None, 1]
