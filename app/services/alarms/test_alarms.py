"""Test alarms: one marked message to exactly those whom a real alarm would reach, and what each of them said.

Only addresses and channels that are stored or configured are used, never any of the request. All targets are told at once and
nobody waits longer than WAIT_S; no transaction is open meanwhile.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.config import Config
from app.db import transact
from app.domain.permissions import Actor, Right, require_admin
from app.domain.texts import N_
from app.errors import TooManyAttempts
from app.models.group import Group
from app.models.job import Job
from app.services import audit
from app.services.alarms.channels import OK, Message
from app.services.alarms.targets import Target, mails_of, targets_of
from app.services.alarms.texts import compose_test
from app.services.executors import groups
from app.services.jobs import jobs
from app.store import groups as group_store
from app.store import throttle

#: seconds until a target that has not answered is given up
WAIT_S = 10
#: targets of one test; further ones are not told
TARGETS_MAX = 20
#: tests under way in one console process
TESTS_AT_ONCE = 4
#: tests of one user in the window before they have to wait for its end
TESTS_MAX = 5
WINDOW_MS: Millis = 10 * MINUTE_MS

_slots = threading.BoundedSemaphore(TESTS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class AlarmTest:
    """Whose alarms are tested, and who would be told of a real one."""

    #: kind and id, as the trail names them; the installation is ``("", 0)``
    target: tuple[str, int]
    name: str
    targets: dict[str, Target]
    #: mail addresses nothing is sent to, because there is no mail server
    unmailed: list[str]
    group: Group | None = None
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class TargetResult:
    """What one target said; ``problem`` is empty where it has the message."""

    target: str
    problem: str


def job_to_test(session: Session, job_id: int, *, actor: Actor, config: Config) -> AlarmTest:
    """Return who is told of failures of a job. Needs the right to edit it."""
    job = jobs.get_job(session, job_id, actor=actor, right=Right.EDIT)
    group = group_store.find_groups(session, [job.job_group]).get(job.job_group)
    mails = mails_of(job.alarm_email)
    targets = targets_of(config, mails, group.alarm_urls if group else None)
    unmailed = [] if config.mail.host else mails
    return AlarmTest(("job", job.id), f"{job.job_desc} (job {job.id})", targets, unmailed, group, job)


def group_to_test(session: Session, group_id: int, *, actor: Actor, config: Config) -> AlarmTest:
    """Return who is told of failures of every job of a group; the jobs may have mail addresses beside. Needs the right to edit it."""
    group = groups.get_group(session, group_id, actor=actor, right=Right.EDIT)
    return AlarmTest(
        ("group", group.id),
        f"{group.title} ({group.app_name})",
        targets_of(config, [], group.alarm_urls),
        [],
        group,
    )


def installation_to_test(*, actor: Actor, config: Config) -> AlarmTest:
    """Return who is told of all failures. Administrators only."""
    require_admin(actor)
    return AlarmTest(("", 0), "all jobs", targets_of(config, [], None), [])


def send_test(test: AlarmTest, *, actor: Actor, config: Config, now_ms: Millis) -> list[TargetResult]:
    """Tell every target and return what each said. Opens its own transaction; raises TooManyAttempts where the user asks too often."""
    targets = dict(list(test.targets.items())[:TARGETS_MAX])
    if not targets:
        return []
    if not _slots.acquire(blocking=False):
        raise TooManyAttempts(
            N_("Too many tests are under way; try again in %(seconds)s s", seconds=WAIT_S),
            retry_after_s=WAIT_S,
        )
    try:
        transact(lambda session: _count_test(session, test, list(targets), actor=actor, now_ms=now_ms))
        results = _send_all(targets, compose_test(test.name, actor.username, config, now_ms))
    finally:
        _slots.release()
    left_out = [
        TargetResult(name, N_("not told: a test reaches %(n)s targets at most", n=TARGETS_MAX))
        for name in list(test.targets)[TARGETS_MAX:]
    ]
    return results + left_out


def _count_test(
    session: Session, test: AlarmTest, names: Sequence[str], *, actor: Actor, now_ms: Millis
) -> None:
    """Count the test before it is made, so that many at once count one by one, and write it into the trail."""
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
    audit.record(
        session, "alarm.test", actor=actor, now_ms=now_ms, target=test.target, changes={"targets": names}
    )


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
