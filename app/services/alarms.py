"""Telling people of failed and unresolved runs, and of recoveries. Each target by itself: one that hangs delays no other.

Alarms of one job within GROUP_MS become one message; what every target said is kept with the alarm.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.config import Config
from app.db import read_scope, transact
from app.domain.alarm_urls import label, split_urls
from app.domain.enums import AlarmState
from app.models.alarm import Alarm
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services.alarm_texts import compose, compose_recovery
from app.services.channels import OK, Message, send_apprise, send_mail
from app.store import alarms, groups, jobs, logs

logger = logging.getLogger(__name__)

#: period of a round, and alarms of one
PERIOD_MS: Millis = 1_000
ROWS = 200
#: after a message about a job its further alarms gather for so long
GROUP_MS: Millis = 300_000
#: all targets of a round together may take so long
DELIVERY_S = 25.0
LEASE_MS: Millis = 90_000
#: a failed target is tried so often, each wait twice the one before
ATTEMPTS_MAX = 4
RETRY_MS: Millis = 30_000
#: recoveries are looked for with this period, in so many jobs
RECOVERY_PERIOD_MS: Millis = 10_000
RECOVERY_JOBS = 500
#: targets being spoken to at once
AT_ONCE = 16


@dataclass(slots=True)
class _Case:
    """The alarms of one job that are told together."""

    alarms: list[Alarm]
    job: Job | None
    group: Group | None
    logs: list[JobLog]
    #: targets that have had this message at an earlier attempt
    done: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Letter:
    """A message and who gets it: name fit for people -> how; those of ``done`` have had it."""

    targets: dict[str, partial[str]]
    message: Message
    done: set[str] = field(default_factory=set)


class AlarmTeller:
    """Tells alarms; one instance in the monitor."""

    def __init__(self, config: Config, *, node: str) -> None:
        self._config = config
        self._node = node
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="alarm")
        self._recovery_ms: Millis = 0

    def close(self) -> None:
        """Speak to nobody any more; what was not told is told after the next start."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def tick(self, now_ms: Millis) -> Millis:
        """Tell what is due; return the wait until the next round."""
        with read_scope() as session:
            due = alarms.has_due(session, now_ms=now_ms)
        if due:
            cases = transact(lambda session: self._take(session, now_ms))
            self._tell(cases, now_ms)
        if now_ms >= self._recovery_ms:
            self._recovery_ms = now_ms + RECOVERY_PERIOD_MS
            self._announce_recoveries(now_ms)
        return PERIOD_MS

    def _take(self, session: Session, now_ms: Millis) -> list[_Case]:
        taken = alarms.take_due(session, owner=self._node, now_ms=now_ms, lease_ms=LEASE_MS, limit=ROWS)
        by_job: dict[int, list[Alarm]] = defaultdict(list)
        for alarm in taken:
            by_job[alarm.job_id].append(alarm)
        told = alarms.find_told(session, list(by_job), since_ms=now_ms - GROUP_MS)
        for job_id, told_ms in told.items():
            fresh = [alarm.id for alarm in by_job[job_id] if alarm.attempts == 1]
            alarms.put_off(session, fresh, until_ms=told_ms + GROUP_MS)
            by_job[job_id] = [alarm for alarm in by_job[job_id] if alarm.attempts > 1]
        of_jobs = jobs.find_jobs(session, list(by_job))
        of_groups = groups.find_groups(session, {job.job_group for job in of_jobs.values()})
        cases = []
        for job_id, own in by_job.items():
            if own:
                job = of_jobs.get(job_id)
                group = of_groups.get(job.job_group) if job else None
                runs = logs.find_logs(session, [alarm.log_id for alarm in own])
                cases.append(_Case(own, job, group, runs, _done(own)))
        return cases

    def _tell(self, cases: Sequence[_Case], now_ms: Millis) -> None:
        letters = [_Letter(self._targets(case), compose(case.job, case.group, case.logs, self._config), case.done) for case in cases]
        for case, answers in zip(cases, self._deliver(letters), strict=True):
            answers |= dict.fromkeys(case.done, OK)
            state, next_ms = _judge(case, answers, now_ms)
            outcome = json.dumps(answers, ensure_ascii=False)
            transact(partial(alarms.finish, alarms=case.alarms, state=state, outcome=outcome, next_ms=next_ms))
            failed = {target: answer for target, answer in answers.items() if answer != OK}
            if failed:
                logger.warning("alarm not told everywhere job_id=%s failed=%s", case.alarms[0].job_id, failed)

    def _targets(self, case: _Case) -> dict[str, partial[str]]:
        """Return who is to be told, by a name fit for people to read."""
        targets: dict[str, partial[str]] = {}
        if self._config.mail.host and case.job is not None:
            for address in (case.job.alarm_email or "").split(","):
                if address.strip():
                    targets[f"mail {address.strip()}"] = partial(send_mail, self._config.mail, address.strip())
        urls = [*split_urls(case.group.alarm_urls if case.group else None), *self._config.alarm_urls]
        for number, url in enumerate(dict.fromkeys(urls), 1):
            targets[f"{number} {label(url)}"] = partial(send_apprise, url)
        return targets

    def _deliver(self, letters: Sequence[_Letter]) -> list[dict[str, str]]:
        """Speak to all targets of all messages at once; one that has not answered in time has failed."""
        futures: list[dict[str, Future[str]]] = [
            {name: self._pool.submit(send, letter.message) for name, send in letter.targets.items() if name not in letter.done}
            for letter in letters
        ]
        wait([future for one in futures for future in one.values()], timeout=DELIVERY_S)
        return [{name: _answer(future) for name, future in one.items()} for one in futures]

    def _announce_recoveries(self, now_ms: Millis) -> None:
        """Say once of a job that was told as failing that it has succeeded since."""
        cases = []
        with read_scope() as session:
            for job_id, log_id in alarms.find_failing(session, limit=RECOVERY_JOBS).items():
                success = alarms.find_success_after(session, job_id, log_id)
                job = jobs.find_jobs(session, [job_id]).get(job_id) if success else None
                if success and job is not None:
                    group = groups.find_groups(session, [job.job_group]).get(job.job_group)
                    cases.append(_Case([], job, group, logs.find_logs(session, [success])))
        letters = []
        for case in cases:
            if case.job is not None and transact(partial(alarms.close, job_id=case.job.id, until_log_id=case.logs[0].id)):
                letters.append(_Letter(self._targets(case), compose_recovery(case.job, case.group, case.logs[0], self._config)))
        self._deliver(letters)


def _answer(future: Future[str]) -> str:
    if not future.done():
        return f"no answer in {DELIVERY_S:.0f} s"
    error = future.exception()
    return future.result() if error is None else type(error).__name__


def _done(own: Sequence[Alarm]) -> set[str]:
    answers = json.loads(own[0].outcome or "{}")
    return {target for target, answer in answers.items() if answer == OK}


def _judge(case: _Case, answers: dict[str, str], now_ms: Millis) -> tuple[AlarmState, Millis]:
    """Return the new state, and when to try again (or when it was told)."""
    if not answers:
        return AlarmState.SILENT, now_ms
    if all(answer == OK for answer in answers.values()):
        return AlarmState.SENT, now_ms
    attempts = max(alarm.attempts for alarm in case.alarms)
    if attempts >= ATTEMPTS_MAX:
        return AlarmState.FAILED, now_ms
    return AlarmState.PENDING, now_ms + RETRY_MS * 2 ** (attempts - 1)
