"""Health of the alarm channels of the console, from the outcomes of the last days and from test alarms.

Users who are no administrators see the channels that get alarms of their jobs, and what became of these.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.channel_health import Health, MessageResult, health_of
from app.domain.enums import AlarmState
from app.models.channel import AlarmChannel
from app.services.alarms.channels import OK
from app.services.alarms.deliveries import LEASE_MS, NOT_TRIED
from app.services.alarms.targets import destinations_of, displayed, identity
from app.services.auditing.audit import changes_of
from app.store.accounts import audit as audit_store
from app.store.alarms import channels, outcomes
from app.store.alarms.channels import ScopedChannel
from app.store.alarms.outcomes import AlarmOutcome

#: days that are read
DAYS = 7
#: audited action: the result of a test of one channel
TESTED = "channel.test"
#: states of alarms that are still sent, or were held back before they could be
_NOT_FINAL = (AlarmState.PENDING, AlarmState.SENDING, AlarmState.MUTED)


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """A channel with its health."""

    row: ScopedChannel
    health: Health

    @property
    def channel(self) -> AlarmChannel:
        """The channel."""
        return self.row.channel


def find_broken(session: Session, *, actor: Actor, now_ms: Millis) -> list[ChannelHealth]:
    """Return the broken channels that an actor may see, the one that fails longest first.

    Three or four statements, whatever the number of channels and alarms; one without any channel.
    """
    healths = find_health(session, actor=actor, now_ms=now_ms)
    return sorted((row for row in healths if row.health.is_broken), key=lambda row: row.health.since_ms or 0)


def find_health(
    session: Session, *, actor: Actor, now_ms: Millis, days: Sequence[Millis] = ()
) -> list[ChannelHealth]:
    """Return the channels that an actor may see, by name; ``days``: beginnings of the days to count."""
    rows = _visible(session, channels.list_channels(session), actor)
    if not rows:
        return []
    since_ms = min([now_ms - DAYS * DAY_MS, *days])
    alarm_outcomes = outcomes.read_newest(session, actor.group_ids(Right.VIEW), since_ms=since_ms)
    results = _results_by_channel([row.channel for row in rows], alarm_outcomes)
    tests = _tests(session, rows, since_ms)
    return [
        ChannelHealth(
            row,
            health_of(
                [*results[row.channel.id], *tests.get(row.channel.id, ())],
                now_ms=now_ms,
                days=days,
                changed_ms=row.channel.updated_ms,
            ),
        )
        for row in rows
    ]


def find_visible(session: Session, actor: Actor) -> list[ScopedChannel]:
    """Return the channels that an actor may see, by name."""
    return _visible(session, channels.list_channels(session), actor)


def problem_of(name: str, answer: str) -> str:
    """Return the error of a target, empty if it accepted the message; that of a mail address names it."""
    if answer == OK:
        return ""
    return f"{displayed(name).removeprefix('mail ')}: {answer}" if name.startswith("mail ") else answer


def _visible(session: Session, rows: Sequence[ScopedChannel], actor: Actor) -> list[ScopedChannel]:
    """Return the channels that get alarms of jobs the actor may see."""
    return channels.visible_to(session, rows, actor.group_ids(Right.VIEW))


def _results_by_channel(
    receivers: Iterable[AlarmChannel], alarm_outcomes: Iterable[AlarmOutcome]
) -> Mapping[int, list[MessageResult]]:
    """Return channel id -> results of its messages; alarms that were one message count once."""
    channels_of = defaultdict[str, list[int]](list)
    for channel in receivers:
        for name in destinations_of(channel):
            channels_of[identity(name)].append(channel.id)
    results = defaultdict[int, list[MessageResult]](list)
    problems_by_text: dict[str, dict[int, str]] = {}
    for row in dict.fromkeys((row.job_id, row.state, _at_ms(row), row.outcome) for row in alarm_outcomes):
        _job_id, state, at_ms, text = row
        if text not in problems_by_text:
            problems_by_text[text] = _problems(text, channels_of)
        for channel_id, problem in problems_by_text[text].items():
            is_final = state not in _NOT_FINAL
            results[channel_id].append(MessageResult(at_ms, problem, is_final=is_final))
    return results


def _at_ms(row: AlarmOutcome) -> Millis:
    """Return the time of the last attempt."""
    return row.lease_until - LEASE_MS if row.lease_until else row.created_ms


def _problems(outcome: str, channels_of: Mapping[str, Sequence[int]]) -> dict[int, str]:
    """Return channel id -> the error of one of its targets, empty if all accepted the message.

    A target whose turn has not come was not asked. ``channels_of``: identity of a target -> its channels.
    """
    try:
        answers = json.loads(outcome)
    except ValueError:
        return {}
    problems: dict[int, str] = {}
    for name, answer in answers.items() if isinstance(answers, dict) else ():
        if answer != NOT_TRIED:
            for channel_id in channels_of.get(identity(name), ()):
                problems[channel_id] = problems.get(channel_id) or problem_of(name, str(answer))
    return problems


def _tests(
    session: Session, rows: Sequence[ScopedChannel], since_ms: Millis
) -> dict[int, list[MessageResult]]:
    """Return channel id -> its last test, if that is of the period."""
    ids = [row.channel.id for row in rows]
    return {
        entry.object_id: [MessageResult(entry.at_ms, str(changes_of(entry).get("problem", "")), is_test=True)]
        for entry in audit_store.find_newest(session, TESTED, "channel", ids)
        if entry.at_ms >= since_ms
    }
