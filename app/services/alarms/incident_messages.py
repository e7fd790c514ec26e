"""Messages about incidents: that a promise was broken, an escalation, that it is kept again.

Each is a row that is sent once. Of a job with many incidents the first ones are sent at once, and what
follows within five minutes as one message.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.database.engine import transact
from app.domain.alarms.mail_addresses import mails_of
from app.domain.enums import AlarmState, IncidentState, MessageStep
from app.domain.promises.incidents import key_of_instant
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.promise import Incident, IncidentMessage
from app.services.alarms import muted_alarms
from app.services.alarms.channels import DEDUP_KEY, Message
from app.services.alarms.deliveries import GROUP_MS, LEASE_MS, Delivery, Outcome, delivered_of
from app.services.alarms.incident_texts import compose, dedup_key, link_of
from app.services.alarms.targets import Target, targets_of
from app.settings.config import Config
from app.store.alarms import channels
from app.store.alarms.channels import ScopedChannel
from app.store.executors import groups
from app.store.jobs import scheduling as jobs
from app.store.promises import evidence, incidents, promises

#: messages of a round
ROWS = 200
#: messages of each step about a job within GROUP_MS before others are put together
AT_ONCE = 5
#: how long a message waits for the first one, and for the end of a mute, before it is taken again
WAIT_MS: Millis = 2 * SECOND_MS
MUTED_MS: Millis = MINUTE_MS
_ACCEPTED = (AlarmState.SENT.value, AlarmState.PARTLY.value)
#: steps that *kept again* follows, for those who got them
_BEFORE = (MessageStep.OPENED, MessageStep.ESCALATED)
_UNDERWAY = (AlarmState.PENDING.value, AlarmState.SENDING.value)


@dataclass(frozen=True, slots=True)
class _Context:
    """What the messages of a round are about."""

    config: Config
    now_ms: Millis
    incidents: Mapping[int, Incident]
    jobs: Mapping[int, Job]
    groups: Mapping[int, Group]
    mute_by_job: Mapping[int, object]
    channels: Sequence[ScopedChannel]
    #: incident and MessageStep -> state of its message
    states: Mapping[tuple[int, str], str]

    def is_underway(self, incident_id: int) -> bool:
        """Whether the first message waits or is being sent, or the escalation is: that may wait for hours."""
        if self.states.get((incident_id, MessageStep.OPENED)) in _UNDERWAY:
            return True
        return self.states.get((incident_id, MessageStep.ESCALATED)) == AlarmState.SENDING

    def has_got(self, incident_id: int, *steps: MessageStep) -> bool:
        """Whether a target has got one of these messages about an incident."""
        return any(self.states.get((incident_id, step.value)) in _ACCEPTED for step in steps)

    def group_of(self, job_id: int) -> Group | None:
        job = self.jobs.get(job_id)
        return self.groups.get(job.job_group) if job is not None else None


def take_due(config: Config, *, node: str, before_ms: Millis, now_ms: Millis) -> list[Delivery]:
    """Return the messages to send; of several nodes one gets each. Opens its own transactions."""
    if not incidents.has_due_message(before_ms=before_ms):
        return []
    return transact(partial(_take, config=config, node=node, before_ms=before_ms, now_ms=now_ms))


def as_update(session: Session, message: Message, runs: Sequence[JobLog], config: Config) -> Message:
    """Return the message about failed runs, as an update of the incident that one of their instants has."""
    instants = evidence.find_instants(session, [run.id for run in runs])
    keys = {key_of_instant(job_id, instant) for job_id, instant in instants.values()}
    live = [row for row in incidents.find_by_keys(session, keys).values() if row.state in incidents.LIVE]
    if not live:
        return message
    incident = max(live, key=lambda row: row.id)
    facts = {**message.facts, "incident": incident.id, DEDUP_KEY: dedup_key(incident)}
    body = f"{message.body.rstrip()}\n\nIncident: {link_of(incident, config)}"
    return replace(message, body=body, facts=facts)


def _take(session: Session, config: Config, node: str, before_ms: Millis, now_ms: Millis) -> list[Delivery]:
    messages = incidents.take_due_messages(
        session, owner=node, before_ms=before_ms, lease_until=now_ms + LEASE_MS, limit=ROWS
    )
    if not messages:
        return []
    context = _context(session, messages, config, now_ms)
    by_job = _sendable(session, messages, context)
    times_by_step = defaultdict[tuple[int, str], list[Millis]](list)
    for row in incidents.find_sent_since(session, list(by_job), since_ms=now_ms - GROUP_MS):
        times_by_step[row.job_id, row.step].append(row.sent_ms)
    deliveries = []
    for job_id, of_job in by_job.items():
        for batch in _batches(session, job_id, of_job, times_by_step):
            deliveries.append(_delivery(session, batch, context))
    return deliveries


def _context(
    session: Session, messages: Sequence[IncidentMessage], config: Config, now_ms: Millis
) -> _Context:
    job_ids = {message.job_id for message in messages}
    jobs_by_id = jobs.find_jobs(session, list(job_ids))
    groups_by_id = groups.find_groups(session, {job.job_group for job in jobs_by_id.values()})
    incident_ids = {message.incident_id for message in messages}
    return _Context(
        config,
        now_ms,
        incidents.find_incidents(session, incident_ids),
        jobs_by_id,
        groups_by_id,
        muted_alarms.lock_mutes(session, list(jobs_by_id.values()), now_ms=now_ms),
        channels.list_channels(session),
        {(row.incident_id, row.step): row.state for row in incidents.messages_of(session, incident_ids)},
    )


def _sendable(
    session: Session, messages: Iterable[IncidentMessage], context: _Context
) -> dict[int, list[IncidentMessage]]:
    """Return job id -> messages that are sent now; put off those that have to wait, and drop the others."""
    by_job = defaultdict[int, list[IncidentMessage]](list)
    for message in messages:
        incident = context.incidents.get(message.incident_id)
        if incident is None or incident.state == IncidentState.WITHDRAWN:
            _drop(session, message, context)
        elif (until_ms := _waits_until(message, context)) is not None:
            _put_off(session, message, until_ms)
        elif _is_needed(message, incident, context):
            by_job[message.job_id].append(message)
        else:
            _drop(session, message, context)
    return by_job


def _waits_until(message: IncidentMessage, context: _Context) -> Millis | None:
    """Return until when a message waits, for the end of a mute or the first message; None: it does not."""
    if message.job_id in context.mute_by_job:
        return context.now_ms + MUTED_MS
    if message.step == MessageStep.KEPT_AGAIN and context.is_underway(message.incident_id):
        return context.now_ms + WAIT_MS
    return None


def _is_needed(message: IncidentMessage, incident: Incident, context: _Context) -> bool:
    match message.step:
        case MessageStep.OPENED:
            is_fresh = message.attempts == 1 and not message.outcome
            was_muted = is_fresh and message.next_ms >= message.created_ms + MUTED_MS
            return not was_muted or incident.state != IncidentState.KEPT_AGAIN
        case MessageStep.ESCALATED:
            return incident.state == IncidentState.OPEN
        case _:
            return context.has_got(incident.id, *_BEFORE)


def _drop(session: Session, message: IncidentMessage, context: _Context) -> None:
    incidents.finish_messages(session, [message], state=AlarmState.SILENT, next_ms=context.now_ms)


def _put_off(session: Session, message: IncidentMessage, until_ms: Millis) -> None:
    incidents.finish_messages(session, [message], state=AlarmState.PENDING, next_ms=until_ms, counts=False)


def _batches(
    session: Session,
    job_id: int,
    messages: Sequence[IncidentMessage],
    times_by_step: Mapping[tuple[int, str], Sequence[Millis]],
) -> Iterable[list[IncidentMessage]]:
    """Yield the messages of a job as they are sent: of each step the first one by one, further ones together.

    Those that some targets have got already are only put together with others of which the same holds.
    """
    alike = defaultdict[tuple[str, int, str], list[IncidentMessage]](list)
    for row in messages:
        alike[row.step, row.attempts, row.outcome or ""].append(row)
    for (step, attempts, outcome), rows in alike.items():
        if attempts > 1 or outcome:
            yield rows
            continue
        sent_ms = times_by_step.get((job_id, step), ())
        free = max(0, AT_ONCE - len(sent_ms))
        yield from ([row] for row in rows[:free])
        rest = rows[free:]
        if rest and len(sent_ms) > AT_ONCE:
            for row in rest:
                _put_off(session, row, sent_ms[0] + GROUP_MS)
        elif rest:
            yield rest


def _delivery(session: Session, batch: list[IncidentMessage], context: _Context) -> Delivery:
    first, config = batch[0], context.config
    job, group = context.jobs.get(first.job_id), context.group_of(first.job_id)
    step = MessageStep(first.step)
    of_incidents = [context.incidents[row.incident_id] for row in batch]
    return Delivery(
        compose(step, of_incidents, job, group, config),
        _targets(session, batch, job, group, context),
        first.attempts,
        ("job", job.id) if job else None,
        partial(_store, batch=batch),
        delivered_of(first.outcome),
    )


def _targets(
    session: Session,
    batch: Sequence[IncidentMessage],
    job: Job | None,
    group: Group | None,
    context: _Context,
) -> dict[str, Target]:
    """Return the targets of a batch: *kept again* goes to all that an incident of it was sent to."""
    steps = [MessageStep(batch[0].step)]
    if steps == [MessageStep.KEPT_AGAIN]:
        steps = [step for step in _BEFORE if any(context.has_got(row.incident_id, step) for row in batch)]
    config, targets = context.config, dict[str, Target]()
    if MessageStep.ESCALATED in steps:
        escalating = promises.find_escalating(session, [job.id] if job is not None else [])
        escalation = next((row.escalation for row in escalating.values()), None)
        name = escalation.channel if escalation is not None else None
        channels = [row.channel for row in context.channels if row.channel.name == name]
        targets |= targets_of(replace(config, alarm_urls=()), [], None, channels=channels)
    if MessageStep.OPENED in steps:
        group_id, job_id = (group.id if group else 0), (job.id if job else 0)
        covering = [row.channel for row in context.channels if row.covers(group_id, job_id)]
        mails = mails_of(job.alarm_email if job else None)
        targets |= targets_of(config, mails, group.alarm_urls if group else None, channels=covering)
    return targets


def _store(session: Session, outcome: Outcome, *, batch: Sequence[IncidentMessage]) -> None:
    incidents.finish_messages(
        session,
        batch,
        state=outcome.state,
        next_ms=outcome.next_ms,
        outcome=json.dumps(dict(outcome.results), ensure_ascii=False),
        counts=outcome.counts,
    )
