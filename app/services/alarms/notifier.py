"""Alarm notifier: sends messages about failed and unresolved runs, recoveries, ended mutes and wrong clocks.

Channels are independent: one that hangs does not delay the others. Alarms of a job within ``GROUP_MS`` become
one message. The result for each target is stored with the alarm.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import count_at_commit, read_scope, transact
from app.database.faults import data_fault
from app.domain.access.permissions import system_actor
from app.domain.alarms.alarm_urls import split_urls
from app.domain.alarms.mail_addresses import mails_of
from app.domain.enums import AlarmReason, AlarmState
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.runtime.metrics import ALARMS_ENDED
from app.services.alarms import muted_alarms, summaries
from app.services.alarms.channels import OK, Message
from app.services.alarms.deliveries import (
    GROUP_MS,
    NOT_TRIED,
    NOT_TRIED_MS,
    Delivery,
    Notice,
    Subject,
    counts,
    delivered_of,
    failed_of,
    next_state,
    split_alarms,
)
from app.services.alarms.targets import (
    NO_MAIL_SERVER,
    Channels,
    Target,
    all_mails,
    displayed,
    is_among,
    mail_name,
    targets_of,
)
from app.services.alarms.texts import compose, compose_mute_end, compose_recovery
from app.services.auditing import audit
from app.settings.config import Config
from app.store.accounts import audit as audit_store
from app.store.alarms import alarms, channels, mutes
from app.store.alarms import recoveries as recovery_store
from app.store.alarms.channels import ScopedChannel
from app.store.executors import groups
from app.store.executors import listing as group_lists
from app.store.fires import logs
from app.store.jobs import scheduling as jobs

logger = logging.getLogger(__name__)

#: period of a round, and the number of alarms it takes
PERIOD_MS: Millis = 1_000
ROWS = 200
LEASE_MS: Millis = 90_000
#: period of the search for recoveries, and the number of jobs it reads
RECOVERY_PERIOD_MS: Millis = 10_000
RECOVERY_JOBS = 500
#: audited actions: a message that finally failed (of a job, a group or a node), a notice of a node
DELIVERY_FAILED = "alarm.failed"
NODE_NOTICE = "node.notice"


class AlarmNotifier:
    """Notifier of pending alarms; one instance in the monitor, used by one thread."""

    def __init__(self, config: Config, *, node: str) -> None:
        self._config = config
        self._node = node
        self._channels = Channels()
        self._deliveries: list[Delivery] = []
        self._recovery_ms: Millis = 0
        #: last job of the previous search for recoveries; 0: start again
        self._recovery_job_id = 0
        #: the latest notice, until it is delivered or given up
        self._notice: Notice | None = None

    def close(self) -> None:
        """Stop delivering; pending alarms are retried after the next start."""
        self._channels.close()

    def announce(self, message: Message, now_ms: Millis) -> None:
        """Queue a notice about this node for the next round; it replaces an older one."""
        self._notice = Notice(message, now_ms)

    def tick(self, now_ms: Millis) -> Millis:
        """Store results, send what is due; return the wait until the next round. Never waits."""
        self._store_results(now_ms)
        if self._notice and self._notice.next_ms is not None and self._notice.next_ms <= now_ms:
            self._send_notice(self._notice, now_ms)
        if mutes.has_ended(now_ms=now_ms):
            self._notify_mute_ends(now_ms)
        if alarms.has_due(now_ms=now_ms):
            for subject in transact(lambda session: self._take(session, now_ms)):
                self._send(subject, self._message_of(subject), now_ms)
        if now_ms >= self._recovery_ms:
            self._recovery_ms = now_ms + RECOVERY_PERIOD_MS
            self._queue_recoveries(now_ms)
        return PERIOD_MS

    def _message_of(self, subject: Subject) -> Message:
        if subject.alarms[0].reason == AlarmReason.RECOVERED:
            run = next(iter(subject.logs), None)
            return compose_recovery(subject.job, subject.group, run, self._config)
        return compose(subject.job, subject.group, subject.alarms, subject.logs, self._config)

    def _take(self, session: Session, now_ms: Millis) -> list[Subject]:
        taken = alarms.take_due(session, owner=self._node, now_ms=now_ms, lease_ms=LEASE_MS, limit=ROWS)
        if not taken:  # those that are being sent count as due too
            return []
        by_job: dict[int, list[Alarm]] = defaultdict(list)
        for alarm in taken:
            by_job[alarm.job_id].append(alarm)
        last_leases = alarms.find_last_attempts(
            session, list(by_job), apart_from=[alarm.id for alarm in taken]
        )
        subjects = []
        jobs_by_id = jobs.find_jobs(session, list(by_job))
        groups_by_id = groups.find_groups(session, {job.job_group for job in jobs_by_id.values()})
        muted = muted_alarms.lock_mutes(session, list(jobs_by_id.values()), now_ms=now_ms)
        found = channels.find_for(session, group_ids=groups_by_id, job_ids=by_job)
        for job_id, taken_of_job in by_job.items():
            recoveries = recovery_store.drop_outdated(
                session, [alarm for alarm in taken_of_job if alarm.reason == AlarmReason.RECOVERED]
            )
            failures = [alarm for alarm in taken_of_job if alarm.reason != AlarmReason.RECOVERED]
            if job_id in muted:
                if failures:
                    muted_alarms.hold(session, failures, muted[job_id])
                alarms.put_off(session, recoveries, until_ms=now_ms + GROUP_MS)
                continue
            last_ms = last_leases.get(job_id, 0) - LEASE_MS
            own, waiting, until_ms = split_alarms(failures, last_ms=last_ms, now_ms=now_ms)
            alarms.put_off(session, waiting, until_ms=until_ms)
            job = jobs_by_id.get(job_id)
            group = groups_by_id.get(job.job_group) if job else None
            theirs = _channels_of(found, job_id, group)
            for together in filter(None, [*([each] for each in recoveries), own]):
                runs = logs.find_logs(session, [alarm.log_id for alarm in together])
                delivered = delivered_of(together[0].outcome)
                subjects.append(Subject(together, job, group, runs, delivered, channels=theirs))
        return subjects

    def _notify_mute_ends(self, now_ms: Millis) -> None:
        """Send one summary per ended mute that held alarms back."""
        for ended in muted_alarms.take_ended(owner=self._node, now_ms=now_ms, lease_ms=LEASE_MS):
            with read_scope() as session:
                subject = summaries.subject_of(session, ended, self._config)
            self._send(subject, compose_mute_end(ended, self._config), now_ms)

    def _send(self, subject: Subject, message: Message, now_ms: Millis) -> None:
        """Queue a message for all its targets, except those of ``subject.delivered``."""
        targets = {
            name: target
            for name, target in self._targets(subject).items()
            if not is_among(name, subject.delivered)
        }
        pending = {
            name: self._channels.submit(target, subject.own.get(name, message))
            for name, target in targets.items()
        }
        self._deliveries.append(Delivery(subject, pending, now_ms))

    def _send_notice(self, notice: Notice, now_ms: Millis) -> None:
        """Send a notice to the channels for all jobs, or if there are none, to those of all groups."""
        urls: list[str] = []
        with read_scope() as session:
            everywhere = channels.find_for(session, group_ids=[])
            if not self._config.alarm_urls and not everywhere:
                visible = group_lists.find_visible(session, None)
                urls = [url for group in visible for url in split_urls(group.alarm_urls)]
                everywhere = channels.list_channels(session)
        if not urls and not everywhere and not self._config.alarm_urls:
            logger.warning("node notice not sent, no channel is set up title=%s", notice.message.title)
        if not notice.is_audited:
            changes = {"notice": notice.message.title}
            transact(lambda session: self._audit(session, NODE_NOTICE, ("node", 0), changes, now_ms))
            notice.is_audited = True
        notice.next_ms = None
        theirs = [each.channel for each in everywhere]
        subject = Subject([], None, None, [], notice.delivered, urls, notice, channels=theirs)
        self._send(subject, notice.message, now_ms)

    def _store_results(self, now_ms: Millis) -> None:
        """Store the results of the deliveries that have ended, then remove them.

        One whose result cannot be stored stays, for the next round: its message is not sent again. If the
        result itself is refused, one
        without the texts of errors is stored, or none: the others must not wait for it.
        """
        for delivery in [each for each in self._deliveries if each.has_ended(now_ms)]:
            subject, results = delivery.subject, delivery.results()
            for answers in (results, _plain(results)):
                try:
                    self._store_result(subject, answers, now_ms)
                    break
                except DBAPIError as exc:
                    if (reason := data_fault(exc)) is None:
                        raise
                    job_id = subject.job.id if subject.job else None
                    logger.error("result not stored job_id=%s database_error=%r", job_id, reason)
            self._deliveries.remove(delivery)
            self._log_failures(subject, failed_of(results))
        self._channels.tidy()

    def _store_result(self, subject: Subject, results: dict[str, str], now_ms: Millis) -> None:
        if subject.notice:
            self._finish_notice(subject.notice, results, now_ms)
        else:
            finish = self._finish_mute if subject.ended else self._finish
            transact(partial(finish, subject=subject, results=results, now_ms=now_ms))

    def _log_failures(self, subject: Subject, failed: dict[str, str]) -> None:
        if failed and subject.notice:
            title = subject.notice.message.title
            logger.warning("node notice not delivered title=%s failed=%s", title, failed)
        elif failed and not subject.ended:
            job_id = subject.job.id if subject.job else None
            logger.warning("alarm not delivered job_id=%s failed=%s", job_id, failed)

    def _finish_notice(self, notice: Notice, results: dict[str, str], now_ms: Millis) -> None:
        """Schedule a retry for the targets that failed, unless a newer notice has replaced this one."""
        if notice is not self._notice:
            return
        failed = failed_of(results)
        state, next_ms = next_state(notice.attempts + 1, results, now_ms)
        if state is AlarmState.PENDING:
            notice.attempts += counts(results)
            notice.delivered, notice.next_ms = results.keys() - failed.keys(), next_ms
            return
        if failed:
            transact(lambda session: self._audit_failure(session, ("node", 0), failed, now_ms))
        self._notice = None

    def _finish(self, session: Session, *, subject: Subject, results: dict[str, str], now_ms: Millis) -> None:
        """Store the results of a job's alarms or recovery; a final failure is audited on the job."""
        if set(results.values()) == {NOT_TRIED}:
            alarms.put_off(session, subject.alarms, until_ms=now_ms + NOT_TRIED_MS)
            return
        attempts = max(alarm.attempts for alarm in subject.alarms)
        state, next_ms = next_state(attempts, results, now_ms)
        outcome = json.dumps(results | self._unmailed(subject), ensure_ascii=False)
        alarms.finish(
            session, subject.alarms, state=state, outcome=outcome, next_ms=next_ms, counts=counts(results)
        )
        if state is not AlarmState.PENDING:
            count = partial(ALARMS_ENDED.add, state.value.lower(), count=len(subject.alarms))
            count_at_commit(session, count)
        if state in (AlarmState.FAILED, AlarmState.PARTLY) and subject.job is not None:
            self._audit_failure(session, ("job", subject.job.id), failed_of(results), now_ms)

    def _finish_mute(
        self, session: Session, *, subject: Subject, results: dict[str, str], now_ms: Millis
    ) -> None:
        """Store the results of the summary of an ended mute.

        If at least one target accepted it, recoveries are sent: some mail addresses never work.
        """
        ended = subject.ended
        assert ended is not None
        mute, outcome = ended.mute, json.dumps(results, ensure_ascii=False)
        state, next_ms = next_state(mute.attempts, results, now_ms)
        notified = OK in results.values()
        if state is AlarmState.PENDING:
            muted_alarms.put_off(session, ended, outcome=outcome, next_ms=next_ms, counts=counts(results))
            if notified:
                muted_alarms.count_notified(session, ended, outcome=outcome, lease_until=now_ms + LEASE_MS)
            return
        muted_alarms.finish(session, ended, notified=notified, outcome=outcome, lease_until=now_ms + LEASE_MS)
        if state in (AlarmState.FAILED, AlarmState.PARTLY):
            target = ("group", mute.group_id) if mute.group_id else ("job", mute.job_id)
            self._audit_failure(session, target, failed_of(results), now_ms)

    def _audit_failure(
        self, session: Session, target: tuple[str, int], failed: dict[str, str], now_ms: Millis
    ) -> None:
        """Audit the targets that failed, unless the latest entry of the object is the same."""
        failed = {displayed(name): error for name, error in failed.items()}
        latest = audit_store.list_of_object(session, *target, limit=1)
        if not any(entry.action == DELIVERY_FAILED and audit.changes_of(entry) == failed for entry in latest):
            self._audit(session, DELIVERY_FAILED, target, failed, now_ms)

    def _audit(
        self,
        session: Session,
        action: str,
        target: tuple[str, int],
        changes: Mapping[str, str],
        now_ms: Millis,
    ) -> None:
        actor = system_actor(self._node)
        audit.record(session, action, actor=actor, now_ms=now_ms, target=target, changes=changes)

    def _unmailed(self, subject: Subject) -> dict[str, str]:
        """Return the mail addresses that got nothing because no mail server is configured."""
        if self._config.mail.host:
            return {}
        mails = all_mails(mails_of(subject.job.alarm_email if subject.job else None), subject.channels)
        return {mail_name(address): NO_MAIL_SERVER for address in mails}

    def _targets(self, subject: Subject) -> dict[str, Target]:
        mails = (
            subject.ended.mails
            if subject.ended
            else mails_of(subject.job.alarm_email if subject.job else None)
        )
        urls = subject.group.alarm_urls if subject.group else None
        return targets_of(self._config, mails, urls, subject.urls, subject.channels)

    def _queue_recoveries(self, now_ms: Millis) -> None:
        """Queue one message per job that has succeeded since its alarms, unless it is muted."""
        with read_scope() as session:
            failing = recovery_store.find_failing(
                session, after_id=self._recovery_job_id, limit=RECOVERY_JOBS
            )
            self._recovery_job_id = failing[-1] if len(failing) == RECOVERY_JOBS else 0
            successes = recovery_store.find_successes(session, failing) if failing else {}
        for job_id, log_id in successes.items():
            transact(partial(recovery_store.queue_recovery, job_id=job_id, log_id=log_id, now_ms=now_ms))


def _plain(results: Mapping[str, str]) -> dict[str, str]:
    """Return results without the texts of errors, which the database may refuse."""
    return {name: text if text in (OK, NOT_TRIED) else "failed" for name, text in results.items()}


def _channels_of(found: Sequence[ScopedChannel], job_id: int, group: Group | None) -> list[AlarmChannel]:
    """Return the channels of the console that get the alarms of a job."""
    return [each.channel for each in found if each.covers(group.id if group else 0, job_id)]
