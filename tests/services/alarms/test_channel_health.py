"""Health of channels: from outcomes of alarms and tests, for each user only of jobs they may see."""

import json
from typing import Any

import pytest

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.channel_health import ChannelState
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.channel import AlarmChannel, ChannelScope
from app.models.job import Job
from app.services.alarms.channel_health import ChannelHealth, find_broken, find_health
from app.services.alarms.deliveries import LEASE_MS, NOT_TRIED
from app.services.alarms.targets import destinations_of
from app.store.alarms import outcomes
from tests.support.console import ACTOR
from tests.support.factories import T0, make_job, make_log, save
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

ERROR = "the webhook answered with the status 500"


def channel(name: str, kind: str = "webhook", *, for_all: bool = True, **settings: str) -> AlarmChannel:
    fields = settings or {"url": f"http://127.0.0.1:1/{name}"}
    return save(AlarmChannel(name=name, kind=kind, settings=json.dumps(fields), for_all=int(for_all)))


def alarm(job: Job, minutes: int, results: dict[str, str], state: str = "FAILED", **values: Any) -> Alarm:
    at_ms = T0 - minutes * MINUTE_MS
    row = {"job_id": job.id, "log_id": make_log(job).id, "reason": "failed", "created_ms": at_ms}
    outcome = json.dumps(results)
    return save(Alarm(**row | {"state": state, "lease_until": at_ms + LEASE_MS, "outcome": outcome} | values))


def name_of(row: AlarmChannel) -> str:
    return next(iter(destinations_of(row)))


def found(actor: Actor = ACTOR, days: tuple[Millis, ...] = ()) -> dict[str, ChannelHealth]:
    with read_scope() as session:
        health = find_health(session, actor=actor, now_ms=T0, days=days)
        return {each.channel.name: each for each in health}


def broken(actor: Actor = ACTOR) -> list[str]:
    with read_scope() as session:
        return [each.channel.name for each in find_broken(session, actor=actor, now_ms=T0)]


def test_a_channel_that_loses_every_message_is_broken_and_others_are_not() -> None:
    pager, chat, job = channel("pager"), channel("chat"), make_job()
    alarm(job, 90, {name_of(pager): "ok", name_of(chat): "ok"}, "SENT")
    for minutes in (60, 30, 5):
        alarm(job, minutes, {name_of(pager): ERROR, name_of(chat): "ok"}, "PARTLY")
    assert broken() == ["pager"]
    health = found()["pager"].health
    assert (health.since_ms, health.lost, health.problem) == (T0 - 60 * MINUTE_MS, 3, ERROR)
    assert health.last_ok_ms == T0 - 90 * MINUTE_MS
    assert found()["chat"].health.state is ChannelState.HEALTHY


def test_alarms_of_one_message_count_once_and_those_that_wait_not_at_all() -> None:
    pager, job = channel("pager"), make_job()
    for _ in range(5):
        alarm(job, 3, {name_of(pager): ERROR})
    alarm(job, 2, {name_of(pager): NOT_TRIED}, "PENDING")
    assert found(days=(T0 - DAY_MS,))["pager"].health.failed == 1
    assert broken() == [], "one lost message may be a passing fault"


def test_a_renamed_channel_keeps_its_health_and_one_with_a_new_url_does_not() -> None:
    pager, job = channel("pager"), make_job()
    for minutes in (60, 30):
        alarm(job, minutes, {name_of(pager).replace("pager", "old name"): ERROR})
    assert broken() == ["pager"]
    pager.settings = json.dumps({"url": "http://127.0.0.1:1/other"})
    save(pager)
    assert found()["pager"].health.state is ChannelState.QUIET


def test_a_successful_test_of_a_channel_ends_its_failure() -> None:
    pager, job = channel("pager"), make_job()
    for minutes in (60, 30):
        alarm(job, minutes, {name_of(pager): ERROR})
    entry = {"action": "channel.test", "object_type": "channel", "object_id": pager.id}
    save(AuditEntry(at_ms=T0 - 20 * MINUTE_MS, changes='{"problem": "no answer in 10 s"}', **entry))
    assert broken() == ["pager"]
    save(AuditEntry(at_ms=T0 - 10 * MINUTE_MS, **entry))
    assert found()["pager"].health.state is ChannelState.HEALTHY


def test_a_mail_channel_fails_with_one_of_its_addresses_and_names_it() -> None:
    channel("mail", "mail", addresses="a@example.com, b@example.com")
    job = make_job()
    for minutes in (60, 30):
        alarm(job, minutes, {"mail a@example.com": "ok", "mail b@example.com": "no such user"}, "PARTLY")
    assert broken() == ["mail"]
    assert found()["mail"].health.problem == "b@example.com: no such user"


def test_a_user_sees_the_channels_and_results_of_their_jobs_only() -> None:
    job, other = make_job(), make_job()
    everyone, of_group, of_job = (
        channel("all"),
        channel("group", for_all=False),
        channel("job", for_all=False),
    )
    hidden = channel("hidden", for_all=False)
    save(ChannelScope(channel_id=of_group.id, group_id=job.job_group))
    save(ChannelScope(channel_id=of_job.id, job_id=job.id))
    save(ChannelScope(channel_id=hidden.id, group_id=other.job_group))
    for minutes in (60, 30):
        alarm(other, minutes, {name_of(everyone): ERROR, name_of(hidden): ERROR})
    eve = Actor(7, "eve", is_admin=False, rights={job.job_group: frozenset({Right.VIEW})})
    assert sorted(found(eve)) == ["all", "group", "job"]
    assert (broken(eve), broken()) == ([], ["all", "hidden"])
    assert found(Actor(8, "new", is_admin=False, rights={})) == {}


def test_unreadable_outcomes_and_settings_say_nothing() -> None:
    pager, job = channel("pager"), make_job()
    for text in ("{", "[1]", "{}"):
        alarm(job, 30, {}, outcome=text)
    assert found()["pager"].health.state is ChannelState.QUIET
    pager.settings = "?"
    save(pager)
    assert found()["pager"].health.state is ChannelState.QUIET


def test_the_statements_and_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, job = [channel(f"c{number}") for number in range(6)], make_job()
    for minutes in (60, 30):
        alarm(job, minutes, {name_of(row): ERROR for row in rows})
    with statements() as executed:
        assert len(broken()) == 6
    assert len([sql for sql in executed if sql.startswith("SELECT")]) <= 4
    monkeypatch.setattr(outcomes, "READ_MAX", 1)
    with read_scope() as session:
        assert len(outcomes.read_newest(session, None, since_ms=0)) == 1
