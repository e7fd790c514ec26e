"""Inbox of alarms: messages about failed runs and recoveries, with what became of each, newest first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from app.clock import DAY_MS
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.alarm_results import STATES, AlarmResult, count_results
from app.domain.enums import AlarmState
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel
from app.services.alarms.alarm_list import results_of
from app.services.alarms.targets import destinations_of, identity
from app.services.jobs import job_list
from app.services.runs.rows import LogRow, log_rows
from app.store.alarms import listing
from app.store.alarms.listing import AlarmFilter, StateCount
from app.store.jobs import scheduling as job_store
from app.store.runs.listing import find_without_messages

#: alarms of a page, and alarms that are searched for them
LISTED_MAX, SEARCHED_MAX = 50, 10_000
#: alarms are counted up to this number
COUNTED_MAX = 5_000


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A message: the alarms of one job that were sent, or held back, together."""

    #: the newest
    alarm: Alarm
    count: int
    #: the run of the newest alarm; None: it was cleared
    run: LogRow | None
    #: description of the job; empty: it was deleted, or is not visible to the user
    name: str
    #: targets with their answers, ``ok`` or an error
    answers: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Inbox:
    """A page of the inbox."""

    rows: list[InboxRow]
    #: id before which the list goes on; None: it ends here
    before_id: int | None
    #: numbers of alarms by result, of all pages
    counts: dict[AlarmResult, int]
    #: all of them, each once
    total: int


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Filter of the inbox."""

    alarms: AlarmFilter
    result: AlarmResult | None = None
    channel: AlarmChannel | None = None


def list_inbox(session: Session, query: InboxFilter, *, actor: Actor, before_id: int | None) -> Inbox:
    """Return the newest messages with ids below ``before_id`` (None: of all); alarms of visible groups only.

    Raises NotFound for a job that the actor may not see. The number of statements is bounded.
    """
    if query.alarms.job_id is not None:
        job_list.get_job(session, query.alarms.job_id, actor=actor, right=Right.VIEW)
    visible, criteria = actor.group_ids(Right.VIEW), _criteria(query)
    end_id = listing.find_id_after(session, criteria.to_ms) if criteria.to_ms is not None else None
    page = listing.list_before(
        session, criteria, visible, before_id=before_id or end_id, limit=LISTED_MAX, searched_max=SEARCHED_MAX
    )
    further_id = page.before_id
    if further_id and criteria.from_ms and listing.is_older(session, further_id, than_ms=criteria.from_ms):
        further_id = None
    counts = listing.count_states(
        session, criteria, visible, before_id=end_id, searched_max=SEARCHED_MAX, limit=COUNTED_MAX
    )
    rows = _rows(session, page.rows, actor)
    return Inbox(rows, further_id, _results(query, counts), sum(count.alarms for count in counts))


def target_texts(channel: AlarmChannel) -> list[str]:
    """Return how outcomes write the targets of a channel, whatever its name was."""
    names = destinations_of(channel)
    return [f'"{name}' if identity(name) == name else f"#{identity(name)}" for name in names]


def _criteria(query: InboxFilter) -> AlarmFilter:
    """Return the filter of alarms: with a channel, a result is what that channel answered."""
    criteria, result = query.alarms, query.result
    if query.channel is not None:
        # A channel that cannot be read has no targets, and nothing was sent to it.
        criteria = replace(criteria, targets=target_texts(query.channel) or ["\x1f"])
        if result in (AlarmResult.SENT, AlarmResult.FAILED):
            return replace(criteria, is_accepted=result is AlarmResult.SENT)
    return replace(criteria, states=STATES[result]) if result is not None else criteria


def _results(query: InboxFilter, counts: Sequence[StateCount]) -> dict[AlarmResult, int]:
    """Return result -> number of alarms, by the same rule as the filter."""
    results = count_results({count.state: count.alarms for count in counts})
    if query.channel is not None:
        results[AlarmResult.SENT] = sum(count.accepted_count for count in counts)
        results[AlarmResult.FAILED] = sum(count.refused_count for count in counts)
    return results


def _rows(session: Session, alarms: Sequence[Alarm], actor: Actor) -> list[InboxRow]:
    messages = _fold(alarms)
    newest = [message[0] for message in messages]
    logs = find_without_messages(session, [alarm.log_id for alarm in newest])
    runs = log_rows(session, logs, actor=actor)
    run_by_id = {row.log.id: row for row in runs}
    names = job_store.find_names(session, sorted({alarm.job_id for alarm in newest}))
    visible = {job_id: row for job_id, row in names.items() if actor.may(row.job_group, Right.VIEW)}
    return [
        InboxRow(
            alarm,
            len(message),
            run_by_id.get(alarm.log_id),
            visible[alarm.job_id].job_desc if alarm.job_id in visible else "",
            results_of(alarm),
        )
        for alarm, message in zip(newest, messages, strict=True)
    ]


def _fold(alarms: Iterable[Alarm]) -> list[list[Alarm]]:
    """Return the alarms by message, both newest first.

    Those that were never sent are put together by day.
    """
    messages: dict[tuple[object, ...], list[Alarm]] = {}
    for alarm in alarms:
        is_unsent = alarm.state in (AlarmState.MUTED, AlarmState.SILENT) or not alarm.lease_until
        at = alarm.created_ms // DAY_MS if is_unsent else alarm.lease_until
        messages.setdefault((alarm.job_id, alarm.reason, alarm.state, alarm.outcome, at), []).append(alarm)
    return list(messages.values())
