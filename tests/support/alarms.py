"""Helpers of the tests of alarms, for all that need them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope, Session

from app.clock import Millis
from app.database.engine import session_scope
from app.domain.alarms.muting import MuteSpan
from app.models.alarm import Alarm
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.clocks.guard import ClockNews
from app.services.alarms import muted_alarms, mutes
from app.services.alarms.deliveries import (
    LEASE_MS,
)
from app.services.alarms.mutes import MuteDraft
from app.services.alarms.notifier import AlarmNotifier
from app.services.alarms.targets import displayed
from app.settings.config import Config
from tests.acceptance.programs import free_port
from tests.pipeline.steps import call_back
from tests.support.console import ACTOR
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows, make_group, make_job, make_run, only_row
from tests.support.fake_executor import Answer, FakeExecutor

MINUTE: Millis = 60_000


def url_of(server: FakeExecutor, path: str = "") -> str:
    """Return the channel URL of a webhook, with short timeouts."""
    return f"{server.address.replace('http', 'json', 1)}{path}?cto=2&rto=20"


def job_with_channels(*servers: FakeExecutor, **changes: Any) -> Job:
    group = make_group(alarm_urls="\n".join(url_of(server) for server in servers))
    return make_job(job_group=group.id, **changes)


def fail_run(job: Job, now_ms: Millis = T0) -> JobLog:
    run = make_run(job)
    assert call_back(run.id, 500, "disk full", now_ms=now_ms)
    return run


def job_with_an_alarm_for_one_of_two(
    notifier: AlarmNotifier, hook: FakeExecutor, broken: FakeExecutor
) -> Job:
    """Return a job with an alarm that ``hook`` has accepted and ``broken`` refuses."""
    broken.respond("*", Answer(status=500))
    job = job_with_channels(hook, broken)
    fail_run(job)
    eventually(lambda: notifier.tick(T0) and only_row(Alarm).outcome)
    return job


@contextmanager
def notifying(config: Config, node: str = "one", **changes: Any) -> Iterator[AlarmNotifier]:
    notifier = AlarmNotifier(
        replace(config, public_url="https://jobs.example.com/admin", **changes), node=node
    )
    try:
        yield notifier
    finally:
        notifier.close()


def states(*, recovered: bool = False) -> list[str]:
    """Return the states of the alarms, or of the recoveries."""
    return [alarm.state for alarm in all_rows(Alarm) if (alarm.reason == "recovered") == recovered]


def results(alarm: Alarm) -> dict[str, str]:
    """Return the result of each target, without the fingerprints of URLs."""
    return {displayed(name): result for name, result in json.loads(alarm.outcome or "{}").items()}


def tick_until(notifier: AlarmNotifier, now_ms: Millis, *expected_states: str) -> None:
    """Repeat the round at one moment until the alarms are in these states."""
    eventually(
        lambda: notifier.tick(now_ms) and states() == list(expected_states), message=f"{expected_states}"
    )


def messages(server: FakeExecutor) -> list[dict[str, str]]:
    return [request.json for request in server.requests]


WRONG = ClockNews(right=False, skew_ms=-5_230)


class Inbox:
    """Mail server that rejects one user and accepts every other mail."""

    def __init__(self) -> None:
        self.mails: list[tuple[Envelope, bool]] = []
        #: answer to the end of a session
        self.farewell = "221 Bye"

    async def handle_RCPT(  # noqa: N802
        self, _server: Any, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        if address.startswith("nobody"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_QUIT(self, _server: Any, _session: Session, _envelope: Envelope) -> str:  # noqa: N802
        return self.farewell

    async def handle_DATA(self, _server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.mails.append((envelope, session.ssl is not None))
        return "250 OK"


@contextmanager
def mail_server(**settings: Any) -> Iterator[tuple[Inbox, int]]:
    inbox = Inbox()
    controller = Controller(inbox, hostname="127.0.0.1", port=free_port(), **settings)
    controller.start()
    try:
        yield inbox, controller.port
    finally:
        controller.stop()


HOUR: Millis = 3_600_000


def mute(
    job: Job | None = None,
    *,
    group_id: int = 0,
    span: MuteSpan = MuteSpan.HOUR,
    now_ms: Millis = T0,
    reason: str = "",
) -> None:
    draft = MuteDraft(span, reason)
    with session_scope() as session:
        if job is not None:
            mutes.mute_job(session, job.id, draft, actor=ACTOR, now_ms=now_ms)
        else:
            mutes.mute_group(session, group_id, draft, actor=ACTOR, now_ms=now_ms)


def move_as_java_does(job: Job, group_id: int) -> None:
    """Move a job in the database, as the Java admin does."""
    with session_scope() as session:
        session.merge(job).job_group = group_id


def take(node: str, now_ms: Millis) -> list[Any]:
    return muted_alarms.take_ended(owner=node, now_ms=now_ms, lease_ms=LEASE_MS)


def hold_alarm(job: Job) -> JobLog:
    """Fail a run and hold back its alarm, without a notifier."""
    run = fail_run(job)
    with session_scope() as session:
        muted = muted_alarms.lock_mutes(session, [job], now_ms=T0)
        muted_alarms.hold(
            session, [session.merge(alarm) for alarm in all_rows(Alarm, log_id=run.id)], muted[job.id]
        )
    return run
