"""Inbox of alarms: messages of visible groups, what each channel answered, filters and pages."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from app.clock import DAY_MS, MINUTE_MS
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.alarm_results import AlarmResult
from app.errors import NotFound
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel
from app.models.job import Job
from app.services.alarms.deliveries import LEASE_MS
from app.services.alarms.targets import destinations_of
from app.services.report import alarm_inbox as inbox
from app.services.report.alarm_inbox import Inbox, InboxFilter, list_inbox
from app.store.alarms import listing
from app.store.alarms.listing import AlarmFilter
from tests.support.console import ACTOR
from tests.support.factories import T0, make_job, make_log, save
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")


def add(job: Job, minutes: int, outcome: dict[str, str] | None, state: str, **values: Any) -> Alarm:
    at_ms = T0 - minutes * MINUTE_MS
    failed = {"trigger_time": at_ms, "handle_code": 500, "handle_msg": "HTTP 429"}
    row = {"job_id": job.id, "log_id": make_log(job, **failed).id, "reason": "failed", "created_ms": at_ms}
    text = json.dumps(outcome, ensure_ascii=False) if outcome is not None else None
    lease = {"lease_until": at_ms + LEASE_MS if outcome else 0}
    return save(Alarm(**{**row, "state": state, "outcome": text, **lease, **values}))


def pager(name: str = "pager") -> tuple[AlarmChannel, str]:
    settings = json.dumps({"url": f"http://127.0.0.1:1/{name}"})
    row = save(AlarmChannel(name=name, kind="webhook", settings=settings, for_all=1))
    return row, next(iter(destinations_of(row)))


def listed(wanted: InboxFilter | None = None, actor: Actor = ACTOR, before_id: int | None = None) -> Inbox:
    with read_scope() as session:
        return list_inbox(session, wanted or InboxFilter(AlarmFilter()), actor=actor, before_id=before_id)


def ids(page: Inbox) -> list[int]:
    return [row.alarm.id for row in page.rows]


def test_a_row_is_a_message_with_its_reason_and_answers() -> None:
    job, (_row, name) = make_job(), pager()
    batch = [add(job, 5, {name: "HTTP 500"}, "FAILED", lease_until=T0) for _ in range(3)]
    sent = add(job, 4, {name: "ok"}, "SENT")
    page = listed()
    assert [(row.alarm.id, row.count) for row in page.rows] == [(sent.id, 1), (batch[-1].id, 3)]
    assert page.rows[1].answers == [("channel pager", "HTTP 500")]
    run = page.rows[0].run
    assert (page.rows[0].name, run.reason if run else "") == (job.job_desc, "HTTP 429")
    assert (page.total, page.counts[AlarmResult.SENT], page.counts[AlarmResult.FAILED]) == (4, 1, 3)


def test_alarms_that_were_never_sent_are_one_row_a_day() -> None:
    job = make_job()
    for minutes in (3 * 24 * 60, 2, 1):
        add(job, minutes, {"muted": "by ann until unmuted"}, "MUTED", lease_until=minutes)
    assert [row.count for row in listed().rows] == [2, 1]


def test_results_filter_by_state_and_with_a_channel_by_its_answer() -> None:
    job, (pager_row, pager_name), (_chat, chat_name) = make_job(), pager(), pager("chat")
    partly = add(job, 9, {pager_name: "HTTP 500", chat_name: "ok"}, "PARTLY")
    retried = add(job, 8, {pager_name: "HTTP 500", chat_name: "ok"}, "PENDING")
    sent = add(job, 7, {pager_name: "ok", chat_name: "ok"}, "SENT")
    muted, silent = add(job, 6, {"muted": "by ann"}, "MUTED"), add(job, 5, {}, "SILENT")
    by_result = {
        AlarmResult.SENT: [sent, partly],
        AlarmResult.FAILED: [partly],
        AlarmResult.HELD: [muted],
        AlarmResult.WAITING: [retried],
        AlarmResult.SILENT: [silent],
    }
    for result, expected in by_result.items():
        assert ids(listed(InboxFilter(AlarmFilter(), result))) == [row.id for row in expected], result
    of_pager = {
        None: [sent, retried, partly],
        AlarmResult.SENT: [sent],
        AlarmResult.FAILED: [retried, partly],
    }
    for answer, expected in of_pager.items():
        wanted = InboxFilter(AlarmFilter(), answer, pager_row)
        page = listed(wanted)
        assert ids(page) == [row.id for row in expected], answer
        counts = (page.total, page.counts[AlarmResult.SENT], page.counts[AlarmResult.FAILED])
        assert counts == (3, 1, 2), "the numbers beside the results are those of the lists"


def test_the_channel_is_found_under_a_former_name_and_an_unreadable_one_has_no_alarms() -> None:
    job, (row, name) = make_job(), pager("50%_pager")
    alarm = add(job, 5, {name: "ok"}, "SENT")
    row.name = "renamed"
    save(row)
    assert ids(listed(InboxFilter(AlarmFilter(), channel=row))) == [alarm.id]
    row.settings = "?"
    assert ids(listed(InboxFilter(AlarmFilter(), channel=save(row)))) == []


def test_users_see_alarms_of_their_groups_only() -> None:
    job, other = make_job(), make_job()
    own = add(job, 5, {}, "SILENT")
    add(other, 4, {}, "SILENT")
    eve = Actor(7, "eve", is_admin=False, rights={job.job_group: frozenset({Right.VIEW})})
    page = listed(actor=eve)
    assert (ids(page), page.total) == ([own.id], 1)
    with pytest.raises(NotFound):
        listed(InboxFilter(AlarmFilter(job_id=other.id)), eve)


def test_pages_end_where_the_time_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "LISTED_MAX", 2)
    monkeypatch.setattr(inbox, "SEARCHED_MAX", 2)
    job = make_job()
    old = [add(job, 3 * 24 * 60 + number, {}, "SILENT", created_ms=T0 - 3 * DAY_MS) for number in range(4)]
    new = [add(job, number, None, "PENDING") for number in range(3)]
    recent = InboxFilter(AlarmFilter(from_ms=T0 - DAY_MS))
    first = listed(recent)
    assert (sum(row.count for row in first.rows), first.before_id) == (2, new[1].id)
    second = listed(recent, before_id=first.before_id)
    assert (ids(second), second.before_id) == ([new[0].id], None), "what follows is older"
    silent = listed(InboxFilter(AlarmFilter(states=(), from_ms=None), AlarmResult.SILENT))
    assert (silent.rows, bool(silent.before_id)) == ([], True), "only the newest three were searched"
    further = listed(InboxFilter(AlarmFilter(), AlarmResult.SILENT), before_id=silent.before_id)
    assert further.rows[0].alarm.id == old[-1].id


def test_an_end_in_the_past_starts_the_search_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "NUMBERED_WITHIN", 2)
    job = make_job()
    alarms = [add(job, 100 - number, {}, "SILENT") for number in range(40)]
    at_ms = T0 - 90 * MINUTE_MS
    with read_scope() as session:
        bound = listing.find_id_after(session, at_ms)
    assert alarms[10].id < bound <= alarms[10].id + 5
    page = listed(InboxFilter(AlarmFilter(to_ms=at_ms)))
    assert sum(row.count for row in page.rows) == page.total == 11


def test_the_number_of_statements_does_not_grow_with_the_rows() -> None:
    jobs, counts = [make_job() for _ in range(6)], []
    for some in (jobs[:1], jobs):
        counts.append(_statements(some))
    assert counts[0] == counts[1] <= 12


def _statements(jobs: Sequence[Job]) -> int:
    for job in jobs:
        add(job, 5, {"channel x #00000000": "ok"}, "SENT")
    with statements() as executed:
        listed()
    return len([sql for sql in executed if sql.startswith("SELECT")])
