"""Alarm notifier: sends messages about failed and unresolved runs, recoveries, ended mutes and wrong clocks.

Once a day also whether everything ran, to the channels that ask for it; once a week which calendars end.

Channels are independent: one that hangs does not delay the others. Alarms of a job within ``GROUP_MS`` become
one message. The result for each target is stored with the alarm.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import call_at_commit, read_scope, transact
from app.domain.access.permissions import system_actor
from app.domain.alarms.alarm_urls import split_urls
from app.domain.alarms.mail_addresses import mails_of
from app.domain.enums import AlarmReason, AlarmState
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from app.runtime.metrics import ALARMS_ENDED
from app.services.alarms import calendar_notices, daily, incident_messages, muted_alarms, summaries
from app.services.alarms.channels import Message
from app.services.alarms.deliveries import (
    GROUP_MS,
    LEASE_MS,
    NOT_TRIED,
    Delivery,
    Outcome,
    delivered_of,
    split_alarms,
)
from app.services.alarms.targets import NO_MAIL_SERVER, Channels, all_mails, mail_name, targets_of
from app.services.alarms.texts import compose, compose_recovery
from app.services.auditing import audit
from app.settings.config import Config
from app.store.alarms import alarms, channels, mutes
from app.store.alarms import recoveries as recovery_store
from app.store.executors import groups
from app.store.executors import listing as group_lists
from app.store.fires import logs
from app.store.jobs import scheduling as jobs

logger = logging.getLogger(__name__)

#: period of a round, and the number of alarms it takes
PERIOD_MS: Millis = 1_000
ROWS = 200
#: period of the search for recoveries, and the number of jobs it reads
RECOVERY_PERIOD_MS: Millis = 10_000
RECOVERY_JOBS = 500
#: audited action: a notice of a node
NODE_NOTICE = "node.notice"


@dataclass(slots=True)
class Notice:
    """Message about this node; kept in memory only."""

    message: Message
    #: earliest time of the next attempt; None while it is being sent
    next_ms: Millis | None
    attempts: int = 0
    is_audited: bool = False
    #: targets that have it already
    accepted_by: set[str] = field(default_factory=set)


class AlarmNotifier:
    """Notifier of pending alarms; one instance in the monitor, used by one thread."""

    def __init__(self, config: Config, *, node: str) -> None:
        self._config = config
        self._node = node
        self._channels = Channels()
        self._deliveries: list[Delivery] = []
        self._recovery_ms: Millis = 0
        self._daily_ms: Millis = 0
        self._calendar_ms: Millis = 0
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
        self.tick_notice(now_ms)
        if mutes.has_ended(now_ms=now_ms):
            for mute_end in muted_alarms.take_ended(owner=self._node, now_ms=now_ms, lease_ms=LEASE_MS):
                with read_scope() as session:
                    summary = summaries.delivery_of(session, mute_end, self._config)
                self._send(summary, now_ms)
        self.tick_incidents(now_ms, before_ms=now_ms)
        if alarms.has_due(now_ms=now_ms):
            for delivery in transact(lambda session: self._take(session, now_ms)):
                self._send(delivery, now_ms)
        if now_ms >= self._daily_ms:
            self._daily_ms = now_ms + daily.PERIOD_MS
            for message in daily.take_due(self._config, now_ms=now_ms):
                self._send(message, now_ms)
        if now_ms >= self._calendar_ms and self._notice is None:
            self._calendar_ms = now_ms + calendar_notices.PERIOD_MS
            notice = calendar_notices.take_due(self._config, node=self._node, now_ms=now_ms)
            self._notice = None if notice is None else Notice(notice, now_ms, is_audited=True)
        if now_ms >= self._recovery_ms:
            self._recovery_ms = now_ms + RECOVERY_PERIOD_MS
            self._queue_recoveries(now_ms)
        return PERIOD_MS

    def tick_notice(self, now_ms: Millis) -> None:
        """Store results, and send the notice if it is due, as a console does. Never waits."""
        self._store_results(now_ms)
        if self._notice and self._notice.next_ms is not None and self._notice.next_ms <= now_ms:
            self._send(self._delivery_of(self._notice, now_ms), now_ms)

    def tick_incidents(self, now_ms: Millis, *, before_ms: Millis) -> None:
        """Send the messages about incidents that were due at another time or before. Never waits."""
        batch = incident_messages.take_due(self._config, node=self._node, before_ms=before_ms, now_ms=now_ms)
        for message in batch:
            self._send(message, now_ms)

    def _send(self, delivery: Delivery, now_ms: Millis) -> None:
        delivery.send(self._channels, now_ms)
        self._deliveries.append(delivery)

    def _store_results(self, now_ms: Millis) -> None:
        """Store the results of the deliveries that have ended, then remove them.

        One whose result cannot be stored stays, for the next round: its message is not sent again.
        """
        for delivery in [delivery for delivery in self._deliveries if delivery.has_ended(now_ms)]:
            delivery.finish(self._node, now_ms)
            self._deliveries.remove(delivery)
        self._channels.tidy()

    def _take(self, session: Session, now_ms: Millis) -> list[Delivery]:
        due_alarms = alarms.take_due(session, owner=self._node, now_ms=now_ms, lease_ms=LEASE_MS, limit=ROWS)
        if not due_alarms:  # those that are being sent count as due too
            return []
        by_job: dict[int, list[Alarm]] = defaultdict(list)
        for alarm in due_alarms:
            by_job[alarm.job_id].append(alarm)
        last_leases = alarms.find_last_attempts(
            session, list(by_job), apart_from=[alarm.id for alarm in due_alarms]
        )
        deliveries = []
        jobs_by_id = jobs.find_jobs(session, list(by_job))
        groups_by_id = groups.find_groups(session, {job.job_group for job in jobs_by_id.values()})
        mute_by_job = muted_alarms.lock_mutes(session, list(jobs_by_id.values()), now_ms=now_ms)
        scoped_channels = channels.find_for(session, group_ids=groups_by_id, job_ids=by_job)
        for job_id, alarms_of_job in by_job.items():
            recoveries = recovery_store.drop_outdated(
                session, [alarm for alarm in alarms_of_job if alarm.reason == AlarmReason.RECOVERED]
            )
            failures = [alarm for alarm in alarms_of_job if alarm.reason != AlarmReason.RECOVERED]
            if job_id in mute_by_job:
                if failures:
                    muted_alarms.hold(session, failures, mute_by_job[job_id])
                alarms.put_off(session, recoveries, until_ms=now_ms + GROUP_MS)
                continue
            last_ms = last_leases.get(job_id, 0) - LEASE_MS
            due_failures, waiting, until_ms = split_alarms(failures, last_ms=last_ms, now_ms=now_ms)
            alarms.put_off(session, waiting, until_ms=until_ms)
            job = jobs_by_id.get(job_id)
            group = groups_by_id.get(job.job_group) if job else None
            job_channels = [
                row.channel for row in scoped_channels if row.covers(group.id if group else 0, job_id)
            ]
            for batch in filter(None, [*([alarm] for alarm in recoveries), due_failures]):
                deliveries.append(self._delivery_of_alarms(session, batch, job, group, job_channels))
        return deliveries

    def _delivery_of_alarms(
        self,
        session: Session,
        batch: Sequence[Alarm],
        job: Job | None,
        group: Group | None,
        job_channels: Sequence[AlarmChannel],
    ) -> Delivery:
        """Return the delivery of alarms of a job, or of its recovery."""
        config, runs = self._config, logs.find_logs(session, [alarm.log_id for alarm in batch])
        if batch[0].reason == AlarmReason.RECOVERED:
            message = compose_recovery(job, group, next(iter(runs), None), config)
        else:
            message = compose(job, group, batch, runs, config)
            message = incident_messages.as_update(session, message, runs, config)
        mails, urls = mails_of(job.alarm_email if job else None), group.alarm_urls if group else None
        mail_names = [] if config.mail.host else map(mail_name, all_mails(mails, job_channels))
        return Delivery(
            message,
            targets_of(config, mails, urls, channels=job_channels),
            max(alarm.attempts for alarm in batch),
            ("job", job.id) if job else None,
            partial(_store_alarms, batch=batch, problems=dict.fromkeys(mail_names, NO_MAIL_SERVER)),
            delivered_of(batch[0].outcome),
        )

    def _delivery_of(self, notice: Notice, now_ms: Millis) -> Delivery:
        """Return the delivery of a notice to the channels for all jobs, or to all if there are none."""
        urls: list[str] = []
        with read_scope() as session:
            receivers = [row.channel for row in channels.find_for(session, group_ids=[])]
            if not self._config.alarm_urls and not receivers:
                visible = group_lists.find_visible(session, None)
                urls = [url for group in visible for url in split_urls(group.alarm_urls)]
                receivers = [row.channel for row in channels.list_channels(session)]
        targets = targets_of(self._config, [], None, urls, receivers)
        if not targets:
            logger.warning("node notice not sent, no channel is set up title=%s", notice.message.title)
        if not notice.is_audited:
            transact(partial(self._audit_notice, notice=notice, now_ms=now_ms))
            notice.is_audited = True
        notice.next_ms = None
        return Delivery(
            notice.message,
            targets,
            notice.attempts + 1,
            ("node", 0),
            store=lambda _session, _outcome: None,
            accepted_by=notice.accepted_by,
            after=partial(self._settle, notice),
        )

    def _audit_notice(self, session: Session, *, notice: Notice, now_ms: Millis) -> None:
        actor, changes = system_actor(self._node), {"notice": notice.message.title}
        audit.record(session, NODE_NOTICE, actor=actor, now_ms=now_ms, target=("node", 0), changes=changes)

    def _settle(self, notice: Notice, outcome: Outcome) -> None:
        """Schedule a retry for the targets that failed, unless a newer notice has replaced this one."""
        if outcome.state is AlarmState.PENDING:
            notice.attempts += outcome.counts
            notice.accepted_by = outcome.results.keys() - outcome.failed.keys()
            notice.next_ms = outcome.next_ms
        elif notice is self._notice:
            self._notice = None

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


def _store_alarms(
    session: Session, outcome: Outcome, *, batch: Sequence[Alarm], problems: Mapping[str, str]
) -> None:
    """Store the outcome of alarms of a job or of its recovery; those that no target was asked for wait on."""
    if set(outcome.results.values()) == {NOT_TRIED}:
        alarms.put_off(session, batch, until_ms=outcome.next_ms)
        return
    state, text = outcome.state, outcome.text(problems)
    alarms.finish(session, batch, state=state, outcome=text, next_ms=outcome.next_ms, counts=outcome.counts)
    if state is not AlarmState.PENDING:
        call_at_commit(session, partial(ALARMS_ENDED.add, state.value.lower(), count=len(batch)))
