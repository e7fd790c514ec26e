"""Test alarms: send a message marked as a test to the targets of a real alarm and return the result of each.

Only stored or configured addresses and channels are used, never values of the request. All targets are
notified in parallel, within ``WAIT_S`` and outside any transaction.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.database.engine import transact
from app.domain.access.permissions import Actor, Right, require_admin
from app.domain.text.texts import N_
from app.errors import TooManyAttempts
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from app.services.alarms import channel_setup
from app.services.alarms.channel_health import TESTED, problem_of
from app.services.alarms.channels import OK, Message
from app.services.alarms.coverage import reach_of
from app.services.alarms.targets import Target, all_mails, displayed, targets_of
from app.services.alarms.texts import compose_test
from app.services.auditing import audit
from app.services.executors import groups
from app.services.jobs import job_list
from app.settings.config import Config
from app.store.accounts import throttle
from app.store.alarms import channels
from app.store.executors import groups as group_store

#: seconds until a target without an answer counts as failed
WAIT_S = 10
#: targets of one test; further ones are skipped
TARGETS_MAX = 20
#: tests at the same time in one console process
TESTS_AT_ONCE = 4
#: tests of one user within the window
TESTS_MAX = 5
#: characters of an error that are recorded
PROBLEM_MAX = 300
WINDOW_MS: Millis = 10 * MINUTE_MS

_slots = threading.BoundedSemaphore(TESTS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class AlarmTest:
    """Test alarm of a job, a group or the installation, with its targets."""

    #: kind and id, as audited; the installation is ``("", 0)``
    target: tuple[str, int]
    name: str
    targets: dict[str, Target]
    #: mail addresses that get nothing because no mail server is configured
    unmailed: Sequence[str]
    group: Group | None = None
    job: Job | None = None
    channel: AlarmChannel | None = None


@dataclass(frozen=True, slots=True)
class TargetResult:
    """Result of a target; ``problem`` is empty if it accepted the message."""

    target: str
    problem: str


def job_to_test(session: Session, job_id: int, *, actor: Actor, config: Config) -> AlarmTest:
    """Return the test of a job's alarms. Needs the right to edit the job."""
    job = job_list.get_job(session, job_id, actor=actor, right=Right.EDIT)
    group = group_store.find_groups(session, [job.job_group]).get(job.job_group)
    reach = reach_of(session, job, group, config)
    name = f"{job.job_desc} (job {job.id})"
    return AlarmTest(("job", job.id), name, reach.targets, reach.unmailed, group, job)


def group_to_test(session: Session, group_id: int, *, actor: Actor, config: Config) -> AlarmTest:
    """Return the test of a group's channels, without mails of its jobs. Needs the right to edit the group."""
    group = groups.get_group(session, group_id, actor=actor, right=Right.EDIT)
    group_channels = [row.channel for row in channels.find_for(session, group_ids=[group.id])]
    targets = targets_of(config, [], group.alarm_urls, channels=group_channels)
    name = f"{group.title} ({group.app_name})"
    return AlarmTest(("group", group.id), name, targets, _mails_without_server(config, group_channels), group)


def installation_to_test(session: Session, *, actor: Actor, config: Config) -> AlarmTest:
    """Return the test of the channels for all jobs. Administrators only."""
    require_admin(actor)
    common_channels = [row.channel for row in channels.find_for(session, group_ids=[])]
    targets = targets_of(config, [], None, channels=common_channels)
    return AlarmTest(("", 0), "all jobs", targets, _mails_without_server(config, common_channels))


def channel_to_test(session: Session, channel_id: int, *, actor: Actor, config: Config) -> AlarmTest:
    """Return the test of one channel of the console. Administrators only."""
    row = channel_setup.get_channel(session, channel_id, actor=actor)
    targets = targets_of(replace(config, alarm_urls=()), [], None, channels=[row.channel])
    for_what = "all jobs" if row.channel.for_all else "the executors and jobs chosen for it"
    return AlarmTest(
        ("channel", channel_id),
        for_what,
        targets,
        _mails_without_server(config, [row.channel]),
        channel=row.channel,
    )


def _mails_without_server(config: Config, receivers: Sequence[AlarmChannel]) -> list[str]:
    return [] if config.mail.host else all_mails([], receivers)


def send_test(test: AlarmTest, *, actor: Actor, config: Config, now_ms: Millis) -> list[TargetResult]:
    """Send to every target and return the results. Opens its own transaction.

    Raises TooManyAttempts after too many tests by the user or at the same time.
    """
    targets = dict(list(test.targets.items())[:TARGETS_MAX])
    if not targets:
        return []
    if not _slots.acquire(blocking=False):
        raise TooManyAttempts(
            N_("Too many tests are running; try again in %(seconds)s s", seconds=WAIT_S),
            retry_after_s=WAIT_S,
        )
    try:
        transact(lambda session: _count_test(session, test, list(targets), actor=actor, now_ms=now_ms))
        results = _send_all(targets, compose_test(test.name, actor.username, config, now_ms))
        if test.channel is not None:
            transact(partial(_record_result, test=test, results=results, actor=actor, now_ms=now_ms))
    finally:
        _slots.release()
    skips = [
        TargetResult(name, N_("skipped: a test covers at most %(n)s targets", n=TARGETS_MAX))
        for name in list(test.targets)[TARGETS_MAX:]
    ]
    return results + skips


def _count_test(
    session: Session, test: AlarmTest, names: Sequence[str], *, actor: Actor, now_ms: Millis
) -> None:
    """Count and audit the test before it is sent, so that parallel tests all count."""
    counter = throttle.lock_counter(session, f"test-alarm:{actor.user_id}", now_ms=now_ms)
    if now_ms - counter.first_ms >= WINDOW_MS:
        counter.failures, counter.first_ms = 0, now_ms
    if counter.failures >= TESTS_MAX:
        wait_s = -(-(counter.first_ms + WINDOW_MS - now_ms) // SECOND_MS)
        raise TooManyAttempts(
            N_("Too many test alarms; try again in %(seconds)s s", seconds=wait_s), retry_after_s=wait_s
        )
    counter.failures += 1
    counter.last_ms = now_ms
    changes = {"targets": [displayed(name) for name in names]}
    audit.record(session, "alarm.test", actor=actor, now_ms=now_ms, target=test.target, changes=changes)


def _record_result(
    session: Session, *, test: AlarmTest, results: Sequence[TargetResult], actor: Actor, now_ms: Millis
) -> None:
    """Record what became of the test of a channel, which its health is derived from."""
    problem = next((problem_of(row.target, row.problem) for row in results if row.problem), "")
    changes = {"problem": problem[:PROBLEM_MAX]} if problem else {}
    audit.record(session, TESTED, actor=actor, now_ms=now_ms, target=test.target, changes=changes)


def _send_all(targets: dict[str, Target], message: Message) -> list[TargetResult]:
    pool = ThreadPoolExecutor(len(targets), thread_name_prefix="test-alarm")
    results = {name: pool.submit(target.send, message) for name, target in targets.items()}
    wait(results.values(), timeout=WAIT_S)
    pool.shutdown(wait=False, cancel_futures=True)
    return [TargetResult(name, _problem(future)) for name, future in results.items()]


def _problem(future: Future[str]) -> str:
    if not future.done():
        return N_("no answer in %(seconds)s s", seconds=WAIT_S)
    error = future.exception()
    answer = future.result() if error is None else type(error).__name__
    return "" if answer == OK else answer
