"""Troubles: what is wrong in an installation, the most severe first, for the sentence of the dashboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from app.clock import SECOND_MS, Millis

#: a run that is due counts as late from this delay on, as in deploy/monitoring/alerts.yml
LATE_AFTER_MS: Millis = 5 * SECOND_MS


class Trouble(StrEnum):
    """Kinds of trouble, the most severe first: what stops all jobs, some of them, news of them, nothing."""

    CLOCK = "clock"
    STUCK = "stuck"
    NO_SCHEDULER = "no_scheduler"
    NO_EXECUTOR = "no_executor"
    FAILING = "failing"
    INCIDENT = "incident"
    OFFLINE = "offline"
    DRAINED = "drained"
    LATE = "late"
    CONSOLE_CLOCK = "console_clock"
    UNRESOLVED = "unresolved"
    CHANNEL = "channel"
    UNMAILED = "unmailed"
    PASSWORD = "password"
    DRIFT = "drift"


class Tone(StrEnum):
    """Tones of a trouble, the most severe first; their values are classes of the style sheet."""

    DANGER = "danger"
    WARNING = "warning"
    #: worth knowing, but nothing is wrong
    NOTE = "note"


_DANGERS = frozenset(
    (
        Trouble.CLOCK,
        Trouble.STUCK,
        Trouble.NO_SCHEDULER,
        Trouble.NO_EXECUTOR,
        Trouble.FAILING,
        Trouble.INCIDENT,
    )
)


class Finding(NamedTuple):
    """Trouble, and how many jobs, executors, runs, channels, users or nodes have it; 0: it has no number."""

    trouble: Trouble
    number: int = 0

    @property
    def tone(self) -> Tone:
        """Its tone."""
        if self.trouble in _DANGERS:
            return Tone.DANGER
        return Tone.NOTE if self.trouble is Trouble.DRIFT else Tone.WARNING


@dataclass(frozen=True, slots=True)
class Facts:
    """What a reader may know of an installation; each number is one of troubles."""

    #: a scheduler scans; workers with a right clock are alive, but do not scan
    is_scheduling: bool = True
    is_stuck: bool = False
    scheduler_clocks: int = 0
    console_clocks: int = 0
    #: executors without an instance, those with drained instances only, and those with others
    offline: int = 0
    drained_count: int = 0
    online: int = 0
    #: jobs whose last run failed or is unresolved
    failing: int = 0
    #: broken promises that are not acknowledged
    incidents: int = 0
    #: other unresolved runs
    unresolved_count: int = 0
    #: runs that are due and not sent, and when the oldest was due
    late: int = 0
    oldest_late_ms: Millis | None = None
    broken_channels: int = 0
    #: jobs whose alarm mails are not sent
    unmailed_count: int = 0
    weak_passwords: int = 0
    #: jobs that differ from their code
    drift_count: int = 0


def troubles_of(facts: Facts, *, now_ms: Millis) -> list[Finding]:
    """Return what is wrong, the most severe first.

    What another trouble explains is left out: without a right clock or with one that is stuck there is no
    scheduler, and without any executor online it does not matter which are offline.
    """
    has_scheduler = facts.is_scheduling or facts.is_stuck or bool(facts.scheduler_clocks)
    has_executor = bool(facts.online or facts.drained_count or not facts.offline)
    counts = {
        Trouble.CLOCK: facts.scheduler_clocks,
        Trouble.STUCK: int(facts.is_stuck),
        Trouble.NO_SCHEDULER: int(not has_scheduler),
        Trouble.NO_EXECUTOR: int(not has_executor),
        Trouble.FAILING: facts.failing,
        Trouble.INCIDENT: facts.incidents,
        Trouble.OFFLINE: facts.offline if has_executor else 0,
        Trouble.DRAINED: facts.drained_count,
        Trouble.LATE: facts.late if is_late(facts.oldest_late_ms, now_ms=now_ms) else 0,
        Trouble.CONSOLE_CLOCK: facts.console_clocks,
        Trouble.UNRESOLVED: facts.unresolved_count,
        Trouble.CHANNEL: facts.broken_channels,
        Trouble.UNMAILED: facts.unmailed_count,
        Trouble.PASSWORD: facts.weak_passwords,
        Trouble.DRIFT: facts.drift_count,
    }
    return [Finding(trouble, counts[trouble]) for trouble in Trouble if counts[trouble]]


def is_late(due_ms: Millis | None, *, now_ms: Millis) -> bool:
    """Whether a run that is not sent yet is late; None: there is none."""
    return due_ms is not None and now_ms - due_ms >= LATE_AFTER_MS


def tone_of(findings: Sequence[Finding]) -> Tone | None:
    """Return the tone of the most severe trouble; None: all is well."""
    tones = {finding.tone for finding in findings}
    return next((tone for tone in Tone if tone in tones), None)
