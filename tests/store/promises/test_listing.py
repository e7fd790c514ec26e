"""Lists of incidents and promises: filters, states, pages, numbers."""

from app.clock import MINUTE_MS
from app.database.engine import read_scope
from app.domain.enums import IncidentState, PromiseState
from app.store.promises.listing import (
    IncidentFilter,
    PromiseFilter,
    count_kinds,
    count_live,
    count_promises,
    find_before,
    list_before,
    list_promises,
)
from tests.support.factories import make_job
from tests.support.promises import make_incident, make_promise

LONGEST = {"kind": "takes_at_most", "s": 5}


def test_promises_are_listed_by_state_and_counted(database: str) -> None:
    first = make_job()
    second = make_job()
    make_promise(first.id)
    make_promise(first.id, LONGEST, number=2, kept_ms=0)
    make_promise(second.id, LONGEST, number=1, kept_ms=5, broken_ms=9)
    make_promise(second.id, number=2, kept_ms=9, broken_ms=9)
    with read_scope() as session:
        rows = list_promises(session, PromiseFilter(), None, start=0, length=10)
        assert [(row.job_id, row.number, row.state) for row in rows] == [
            (second.id, 1, "broken"),
            (first.id, 2, "new"),
            (first.id, 1, "kept"),
            (second.id, 2, "kept"),
        ]
        assert [row.number for row in list_promises(session, PromiseFilter(), None, start=1, length=2)] == [
            2,
            1,
        ]
        assert list_promises(session, PromiseFilter(), None, start=9, length=2) == []
        assert count_promises(session, PromiseFilter(), None) == {"broken": 1, "new": 1, "kept": 2}
        of_kind = PromiseFilter(kind="takes_at_most", state="new")
        assert [row.job_id for row in list_promises(session, of_kind, None, start=0, length=9)] == [first.id]
        assert count_promises(session, of_kind, None) == {"broken": 1, "new": 1}
        assert count_promises(session, PromiseFilter(), {second.job_group}) == {"broken": 1, "kept": 1}
        assert count_promises(session, PromiseFilter(job_id=second.id), {first.job_group}) == {}
        assert count_promises(session, PromiseFilter(group_id=first.job_group), None) == {"new": 1, "kept": 1}
        counts = count_kinds(session)
        assert {state: counts["takes_at_most", state] for state in PromiseState} == {
            "broken": 1,
            "new": 1,
            "kept": 0,
        }


def test_incidents_are_listed_newest_first_and_those_that_last_are_counted(database: str) -> None:
    job, other = make_job(), make_job()
    ids = [make_incident(job.id, job.job_group, logical_ms=number * MINUTE_MS).id for number in range(3)]
    over = make_incident(other.id, other.job_group, state="kept_again").id
    seen = make_incident(other.id, other.job_group, logical_ms=7, state="acknowledged").id
    with read_scope() as session:
        page = list_before(session, IncidentFilter(), None, before_id=None, limit=2)
        assert ([row.id for row in page.rows], page.before_id) == ([seen, over], over)
        page = list_before(session, IncidentFilter(), None, before_id=page.before_id, limit=3)
        assert ([row.id for row in page.rows], page.before_id) == (ids[::-1], None)
        is_open = IncidentFilter([IncidentState.OPEN])
        page = list_before(session, is_open, {other.job_group}, before_id=None, limit=9)
        assert page.rows == []
        of_group = IncidentFilter([IncidentState.KEPT_AGAIN], group_id=other.job_group)
        page = list_before(session, of_group, None, before_id=None, limit=9)
        assert [row.id for row in page.rows] == [over]
        assert count_live(session, IncidentFilter(), None) == {"open": 3, "acknowledged": 1}
        assert count_live(session, IncidentFilter(job_id=other.id), None) == {"acknowledged": 1}
        assert count_live(session, IncidentFilter(), None, most=None) == {"open": 3, "acknowledged": 1}
        rows = find_before(session, of_group, None, before_id=over + 1, limit=9)
        assert [row.id for row in rows] == [over]
        assert find_before(session, of_group, None, before_id=over, limit=9) == []
