"""Change history: filters, and how many entries a search reads."""

import pytest

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.lists.orders import Order
from app.services.auditing import audit as trail
from app.store.accounts import audit
from app.store.accounts.audit import AuditFilter
from tests.support.factories import T0
from tests.support.statements import statements
from tests.support.store_runs import plan

MINUTE: Millis = 60_000


def fill(count: int) -> None:
    """Store an entry each minute, every tenth by ann about job 7."""
    rows = [
        {
            "at_ms": T0 + number * MINUTE,
            "username": "bob" if number % 10 else "ann",
            "action": "login" if number % 10 else "job.start",
            "object_type": "user" if number % 10 else "job",
            "object_id": 1 if number % 10 else 7,
        }
        for number in range(count)
    ]
    with session_scope() as session:
        audit.insert_entries(session, rows)


def find(wanted: AuditFilter) -> tuple[list[int], int, bool]:
    """Return the minutes of the first entries, how many match, and whether there may be more."""
    with read_scope() as session:
        page = audit.list_entries(session, wanted, start=0, length=3)
        return [(row.at_ms - T0) // MINUTE for row in page.rows], page.total, page.is_capped


def test_entries_are_found_by_user_action_object_and_time(database: str) -> None:
    assert find(AuditFilter()) == ([], 0, False)
    fill(40)
    assert find(AuditFilter(username="an")) == ([30, 20, 10], 4, False)
    assert find(AuditFilter(action="job.")) == ([30, 20, 10], 4, False)
    assert find(AuditFilter(action="job\x00")) == ([], 0, False)
    assert find(AuditFilter(object_type="job")) == ([30, 20, 10], 4, False)
    assert find(AuditFilter(object_type="job", object_id=7, username="bob")) == ([], 0, False)
    within = AuditFilter(from_ms=T0 + 11 * MINUTE, to_ms=T0 + 20 * MINUTE)
    assert find(within) == ([20, 19, 18], 10, False)
    assert find(AuditFilter(from_ms=T0 + 99 * MINUTE)) == ([], 0, False)


def test_a_search_reads_a_bounded_number_of_entries(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SEARCHED_MAX", 15)
    monkeypatch.setattr(audit, "NUMBERED_WITHIN", 0)
    fill(40)
    assert find(AuditFilter(username="ann")) == ([30], 1, True)
    assert find(AuditFilter(username="ann", order=Order("time"))) == ([0, 10], 2, True)
    assert find(AuditFilter(username="ann", to_ms=T0 + 21 * MINUTE)) == ([20, 10], 2, True)
    assert find(AuditFilter(object_type="job", object_id=7)) == ([30, 20, 10], 4, False)
    with statements() as executed:
        find(AuditFilter(username="ann"))
    assert len([sql for sql in executed if "xxl_job_audit" in sql]) == 4


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (AuditFilter(username="ann"), "INTEGER PRIMARY KEY"),
        (AuditFilter(object_type="job", from_ms=T0, to_ms=T0), "INTEGER PRIMARY KEY"),
        (AuditFilter(object_type="job", object_id=7), "ix_xxl_job_audit_object"),
    ],
)
def test_no_search_sorts_entries(database: str, wanted: AuditFilter, index: str) -> None:
    query = audit.select_entries(wanted, 1, 100)
    with read_scope() as session:
        steps = "; ".join(plan(session, lambda session: session.scalars(query).all()))
    assert index in steps
    assert "TEMP B-TREE" not in steps


def test_long_changes_are_cut_to_what_the_column_holds(database: str) -> None:
    """MySQL and MariaDB count bytes, of which a Chinese character has three."""
    changes = {"create": [f"job {number}/" + "报" * 190 for number in range(200)]}
    with session_scope() as session:
        trail.record(session, "code.apply", actor=system_actor("test"), now_ms=T0, changes=changes)
    with read_scope() as session:
        (entry,) = audit.list_entries(session, AuditFilter(), start=0, length=3).rows
        assert (entry.changes or "").startswith('{"create": ["job 0/报报')
