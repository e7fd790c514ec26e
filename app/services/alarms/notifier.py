"""Telling people of failed and unresolved runs, of recoveries, of the end of a mute, of a wrong clock.

Each channel by itself: one that hangs delays no other. Alarms of one job within GROUP_MS become one message; what every target said
is kept with the alarm.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.config import Config
from app.db import read_scope, transact
from app.domain.alarm_urls import split_urls
from app.domain.enums import AlarmState
from app.domain.permissions import system_actor
from app.models.alarm import Alarm
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services import audit
from app.services.alarms import muted_alarms
from app.services.alarms.channels import OK, Message
from app.services.alarms.muted_alarms import EndedMute
from app.services.alarms.targets import Channels, Target, mail_name, mails_of, targets_of
from app.services.alarms.texts import compose, compose_mute_end, compose_recovery
from app.store import alarms, group_lists, groups, jobs, logs, mutes
from app.store import audit as audit_store

logger = logging.getLogger(__name__)

#: period of a round, and alarms of one
PERIOD_MS: Millis = 1_000
ROWS = 200
#: after a message about a job its further alarms gather for so long
GROUP_MS: Millis = 300_000
#: a target that has not had its message by then has failed
DELIVERY_MS: Millis = 30_000
LEASE_MS: Millis = 90_000
#: a failed target is tried so often, each wait twice the one before
ATTEMPTS_MAX = 4
RETRY_MS: Millis = 30_000
#: recoveries are looked for with this period, in so many jobs
RECOVERY_PERIOD_MS: Millis = 10_000
RECOVERY_JOBS = 500
#: entries of the trail: who could not be told at last (by job, and of a node), what was said of a node
NOT_TOLD = "alarm.failed"
NODE_NOTICE = "node.notice"


@dataclass(slots=True)
class _Case:
    """The alarms of one job that are told together."""

    alarms: list[Alarm]
    job: Job | None
    group: Group | None
    logs: list[JobLog]
    #: targets that have had this message at an earlier attempt
    done: set[str] = field(default_factory=set)
    #: channels beside the group's and the installation's
    urls: Sequence[str] = ()
    notice: "_Notice | None" = None
    #: what is told is the end of this mute
    ended: EndedMute | None = None
    #: mail addresses that get another message than the channels
    to_mails: Mapping[str, Message] = field(default_factory=dict)


@dataclass(slots=True)
class _Notice:
    """Something about this node, of no job and no run: no row keeps it."""

    message: Message
    #: not told before; None while it is on its way
    next_ms: Millis | None
    attempts: int = 0
    done: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A message on its way: name fit for people -> what its target says."""

    case: _Case
    answers: dict[str, Future[str]]
    until_ms: Millis

    def is_over(self, now_ms: Millis) -> bool:
        return now_ms >= self.until_ms or all(future.done() for future in self.answers.values())


class AlarmTeller:
    """Tells alarms; one instance in the monitor."""

    def __init__(self, config: Config, *, node: str) -> None:
        self._config = config
        self._node = node
        self._channels = Channels()
        self._deliveries: list[_Delivery] = []
        self._recovery_ms: Millis = 0
        #: the job up to which they were looked for; 0: all
        self._recovery_job_id = 0
        #: the latest one, until it has been told or given up
        self._notice: _Notice | None = None

    def close(self) -> None:
        """Speak to nobody any more; what was not told is told after the next start."""
        self._channels.close()

    def announce(self, message: Message, now_ms: Millis) -> None:
        """Let the next round tell something about this node, in place of what it may still have to tell of it. Does nothing else."""
        self._notice = _Notice(message, now_ms)

    def tick(self, now_ms: Millis) -> Millis:
        """Write down what targets have said, tell what is due; return the wait until the next round. Waits for no channel."""
        self._write_down(now_ms)
        if self._notice and self._notice.next_ms is not None and self._notice.next_ms <= now_ms:
            self._send_notice(self._notice, now_ms)
        with read_scope() as session:
            due, ended = alarms.has_due(session, now_ms=now_ms), mutes.has_ended(session, now_ms=now_ms)
        if ended:
            self._tell_ended(now_ms)
        if due:
            for case in transact(lambda session: self._take(session, now_ms)):
                self._send(case, compose(case.job, case.group, case.logs, self._config), now_ms)
        if now_ms >= self._recovery_ms:
            self._recovery_ms = now_ms + RECOVERY_PERIOD_MS
            self._announce_recoveries(now_ms)
        return PERIOD_MS

    def _take(self, session: Session, now_ms: Millis) -> list[_Case]:
        taken = alarms.take_due(session, owner=self._node, now_ms=now_ms, lease_ms=LEASE_MS, limit=ROWS)
        by_job: dict[int, list[Alarm]] = defaultdict(list)
        for alarm in taken:
            by_job[alarm.job_id].append(alarm)
        told = alarms.find_told(session, list(by_job), apart_from=[alarm.id for alarm in taken])
        cases = []
        of_jobs = jobs.find_jobs(session, list(by_job))
        of_groups = groups.find_groups(session, {job.job_group for job in of_jobs.values()})
        muted = muted_alarms.lock_mutes(session, list(of_jobs.values()), now_ms=now_ms)
        for job_id, alarms_of_job in by_job.items():
            if job_id in muted:
                muted_alarms.hold(session, alarms_of_job, muted[job_id])
                continue
            own, waiting, until_ms = _split(alarms_of_job, told.get(job_id, 0) - LEASE_MS, now_ms)
            if waiting:
                alarms.put_off(session, waiting, until_ms=until_ms)
            if own:
                job = of_jobs.get(job_id)
                group = of_groups.get(job.job_group) if job else None
                runs = logs.find_logs(session, [alarm.log_id for alarm in own])
                cases.append(_Case(own, job, group, runs, _done(own[0].outcome)))
        return cases

    def _tell_ended(self, now_ms: Millis) -> None:
        """Sum up what mutes that are over have held back."""
        for ended in muted_alarms.take_ended(owner=self._node, now_ms=now_ms, lease_ms=LEASE_MS):
            own = {
                address: compose_mute_end(ended.of_mail(address), self._config)
                for address in dict.fromkeys(ended.mails)
            }
            case = _Case([], None, ended.group, [], _done(ended.mute.outcome), ended=ended, to_mails=own)
            self._send(case, compose_mute_end(ended, self._config), now_ms)

    def _send(self, case: _Case, message: Message, now_ms: Millis) -> None:
        """Hand a message to all its channels; those of ``case.done`` have had it."""
        targets = {name: target for name, target in self._targets(case).items() if name not in case.done}
        own = {mail_name(address): theirs for address, theirs in case.to_mails.items()}
        answers = {
            name: self._channels.submit(target, own.get(name, message)) for name, target in targets.items()
        }
        self._deliveries.append(_Delivery(case, answers, now_ms + DELIVERY_MS))

    def _send_notice(self, notice: _Notice, now_ms: Millis) -> None:
        """Tell the channels of the installation; where it has none, those of all groups: it is their jobs that are not fired."""
        urls: list[str] = []
        if not self._config.alarm_urls:
            with read_scope() as session:
                urls = [
                    url
                    for group in group_lists.find_visible(session, None)
                    for url in split_urls(group.alarm_urls)
                ]
            if not urls:
                logger.warning("no channel for a notice title=%s", notice.message.title)
        if not notice.attempts:
            told = {"notice": notice.message.title}
            transact(lambda session: self._record(session, NODE_NOTICE, ("node", 0), told, now_ms))
        notice.attempts, notice.next_ms = notice.attempts + 1, None
        self._send(_Case([], None, None, [], notice.done, urls, notice), notice.message, now_ms)

    def _settle_notice(self, notice: _Notice, answers: dict[str, str], now_ms: Millis) -> None:
        """Try again where a target has not had it, unless there is something newer to tell."""
        failed = _failed(answers)
        if failed:
            logger.warning("notice not told everywhere title=%s failed=%s", notice.message.title, failed)
        if notice is not self._notice:
            return
        if failed and notice.attempts < ATTEMPTS_MAX:
            notice.done = answers.keys() - failed.keys()
            notice.next_ms = now_ms + RETRY_MS * 2 ** (notice.attempts - 1)
            return
        self._notice = None
        if failed:
            transact(lambda session: self._record(session, NOT_TOLD, ("node", 0), failed, now_ms))

    def _write_down(self, now_ms: Millis) -> None:
        """Store what became of the messages that have reached all their targets, or have had their time."""
        over = [delivery for delivery in self._deliveries if delivery.is_over(now_ms)]
        for delivery in over:
            case = delivery.case
            answers = {name: _answer(future) for name, future in delivery.answers.items()} | dict.fromkeys(
                case.done, OK
            )
            if case.alarms:
                transact(partial(self._finish, case=case, answers=answers, now_ms=now_ms))
            self._deliveries.remove(delivery)
            failed = _failed(answers)
            if case.notice:
                self._settle_notice(case.notice, answers, now_ms)
            elif case.ended:
                transact(partial(self._finish_mute, ended=case.ended, answers=answers, now_ms=now_ms))
            elif failed:
                logger.warning(
                    "alarm not told everywhere job_id=%s failed=%s", case.job.id if case.job else None, failed
                )
        self._channels.tidy()

    def _finish(self, session: Session, *, case: _Case, answers: dict[str, str], now_ms: Millis) -> None:
        """Store what targets have said; who could not be told at last stands in the trail of the job, where people see it."""
        state, next_ms = _judge(max(alarm.attempts for alarm in case.alarms), answers, now_ms)
        alarms.finish(
            session,
            case.alarms,
            state=state,
            outcome=json.dumps(answers, ensure_ascii=False),
            next_ms=next_ms,
        )
        if state is AlarmState.FAILED and case.job is not None:
            self._record_not_told(session, ("job", case.job.id), _failed(answers), now_ms)

    def _finish_mute(
        self, session: Session, *, ended: EndedMute, answers: dict[str, str], now_ms: Millis
    ) -> None:
        """Store what came of telling the end of a mute."""
        mute, outcome = ended.mute, json.dumps(answers, ensure_ascii=False)
        state, next_ms = _judge(mute.attempts, answers, now_ms)
        if state is AlarmState.PENDING:
            muted_alarms.put_off(session, ended, outcome=outcome, next_ms=next_ms)
            if OK in answers.values():
                muted_alarms.note_heard(session, ended, outcome=outcome, lease_until=now_ms + LEASE_MS)
            return
        told = (
            OK in answers.values()
        )  # of many mails some never arrive: who has heard of a failure shall hear of the recovery
        muted_alarms.finish(session, ended, told=told, outcome=outcome, lease_until=now_ms + LEASE_MS)
        if state is AlarmState.FAILED:
            target = ("group", mute.group_id) if mute.group_id else ("job", mute.job_id)
            self._record_not_told(session, target, _failed(answers), now_ms)

    def _record_not_told(
        self, session: Session, target: tuple[str, int], failed: dict[str, str], now_ms: Millis
    ) -> None:
        """Write into the trail who could not be told, unless that is the last thing it says already."""
        last = audit_store.list_of_object(session, *target, limit=1)
        if not any(
            entry.action == NOT_TOLD and json.loads(entry.changes or "{}") == failed for entry in last
        ):
            self._record(session, NOT_TOLD, target, failed, now_ms)

    def _record(
        self, session: Session, action: str, target: tuple[str, int], changes: dict[str, str], now_ms: Millis
    ) -> None:
        audit.record(
            session, action, actor=system_actor(self._node), now_ms=now_ms, target=target, changes=changes
        )

    def _targets(self, case: _Case) -> dict[str, Target]:
        mails = case.ended.mails if case.ended else mails_of(case.job.alarm_email if case.job else None)
        return targets_of(self._config, mails, case.group.alarm_urls if case.group else None, case.urls)

    def _announce_recoveries(self, now_ms: Millis) -> None:
        """Say once of a job that was told as failing that it has succeeded since; of a muted one when that is over."""
        with read_scope() as session:
            failing = alarms.find_failing(session, after_id=self._recovery_job_id, limit=RECOVERY_JOBS)
            self._recovery_job_id = failing[-1] if len(failing) == RECOVERY_JOBS else 0
            successes = alarms.find_successes(session, failing) if failing else {}
            of_jobs = jobs.find_jobs(session, successes)
            of_groups = groups.find_groups(session, {job.job_group for job in of_jobs.values()})
            runs = logs.find_logs(session, list(successes.values()))
            found = [(of_jobs[run.job_id], run) for run in runs if run.job_id in of_jobs]
            cases = [_Case([], job, of_groups.get(job.job_group), [run]) for job, run in found]
        for case in cases:
            if case.job is not None and transact(
                partial(alarms.close, job_id=case.job.id, until_log_id=case.logs[0].id)
            ):
                self._send(case, compose_recovery(case.job, case.group, case.logs[0], self._config), now_ms)


def _split(taken: list[Alarm], told_ms: Millis, now_ms: Millis) -> tuple[list[Alarm], list[Alarm], Millis]:
    """Return the alarms of a job that are told now, those that wait, and until when: what is told again goes alone."""
    fresh = [alarm for alarm in taken if alarm.attempts == 1]
    again = [alarm for alarm in taken if alarm.attempts > 1]
    if again:
        return again, fresh, now_ms + GROUP_MS
    if told_ms + GROUP_MS > now_ms:
        return [], fresh, told_ms + GROUP_MS
    return fresh, [], now_ms


def _answer(future: Future[str]) -> str:
    if not future.done():
        future.cancel()  # where it has not begun, it never does: it would be told twice
        return f"no answer in {DELIVERY_MS // 1000} s"
    error = future.exception()
    return future.result() if error is None else type(error).__name__


def _failed(answers: dict[str, str]) -> dict[str, str]:
    return {target: answer for target, answer in answers.items() if answer != OK}


def _done(outcome: str | None) -> set[str]:
    answers = json.loads(outcome or "{}")
    return {target for target, answer in answers.items() if answer == OK}


def _judge(attempts: int, answers: dict[str, str], now_ms: Millis) -> tuple[AlarmState, Millis]:
    """Return the new state, and when to try again (or when it was told)."""
    if not answers:
        return AlarmState.SILENT, now_ms
    if all(answer == OK for answer in answers.values()):
        return AlarmState.SENT, now_ms
    if attempts >= ATTEMPTS_MAX:
        return AlarmState.FAILED, now_ms
    return AlarmState.PENDING, now_ms + RETRY_MS * 2 ** (attempts - 1)
