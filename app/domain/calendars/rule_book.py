"""Rule book: calendars and blackouts as they are now, and as they were, by the jobs that they concern."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.clock import Millis
from app.domain.calendars.blackouts import Afterwards, Blackout, Closure, closure_of_hour
from app.domain.calendars.calendar import Calendar
from app.domain.calendars.day_rule import day_rule, parse_rule
from app.domain.calendars.effective import JobRules


class CalendarVersion(NamedTuple):
    """A version of a calendar, which holds for instants from ``from_ms`` on."""

    from_ms: Millis
    calendar: Calendar


class Membership(NamedTuple):
    """Time in which a job had the tag of a blackout, from ``from_ms`` to before ``until_ms``."""

    job_id: int
    from_ms: Millis
    #: None: it still has it
    until_ms: Millis | None


@dataclass(frozen=True, slots=True, eq=False)
class RuleBook:
    """Calendars and blackouts."""

    #: the greatest id of a change; 0: there was none
    number: int = 0
    #: name -> versions, ascending
    calendars: Mapping[str, Sequence[CalendarVersion]] = field(default_factory=dict)
    blackouts: Sequence[Blackout] = ()
    #: id of a blackout of a tag -> the jobs that had it
    members: Mapping[int, Sequence[Membership]] = field(default_factory=dict)
    #: job, group or neither -> the blackouts of it, those of a tag for as long as the job had it
    _of_scope: dict[tuple[int | None, int | None], list[Blackout]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for blackout in self.blackouts:
            if not blackout.tag:
                self._of_scope.setdefault((blackout.job_id, blackout.group_id), []).append(blackout)
            for member in self.members.get(blackout.id, ()) if blackout.tag else ():
                self._of_scope.setdefault((member.job_id, None), []).append(_cut(blackout, member))

    def of_job(
        self, job_id: int, group_id: int, calendar: str | None, anchor_ms: Millis = 0
    ) -> JobRules | None:
        """Return the present rules of a job; None: it has none.

        ``calendar``: its day rule as it is stored; ``anchor_ms``: first instant of a fixed rate.
        """
        if not calendar and not self.blackouts:
            return None
        job_rule = parse_rule(calendar)
        present = self.find(job_rule.name) if job_rule is not None else None
        rule = day_rule(present, job_rule) if present is not None and job_rule is not None else None
        blackouts = self.blackouts_of(job_id, group_id)
        return JobRules(rule, blackouts, anchor_ms) if rule is not None or blackouts else None

    def find(self, name: str) -> Calendar | None:
        """Return the latest version of a calendar; its name is compared exactly."""
        versions = self.calendars.get(name, ())
        return versions[-1].calendar if versions else None

    def names(self) -> Collection[str]:
        """Return the names of all calendars."""
        return self.calendars.keys()

    def versions_of(self, calendar: str | None) -> Sequence[CalendarVersion]:
        """Return the versions of the calendar that a day rule as it is stored names, ascending."""
        job_rule = parse_rule(calendar)
        return self.calendars.get(job_rule.name, ()) if job_rule is not None else ()

    def closure_at(self, job_id: int, group_id: int, at_ms: Millis) -> Closure | None:
        """Return the blackouts for whose end a job waits at a time; None: it may start."""
        blackouts = self.blackouts_of(job_id, group_id) if self.blackouts else ()
        return closure_of_hour(blackouts, at_ms) if blackouts else None

    def blackouts_of(self, job_id: int, group_id: int) -> tuple[Blackout, ...]:
        """Return the blackouts that concern a job, those of a tag for as long as it had it."""
        scopes = ((None, None), (None, group_id), (job_id, None))
        return tuple(blackout for scope in scopes for blackout in self._of_scope.get(scope, ()))

    def runs_once(self) -> bool:
        """Whether any blackout runs something at its end, which is no instant of a fixed rate."""
        return any(blackout.afterwards is Afterwards.RUN_ONCE for blackout in self.blackouts)


def _cut(blackout: Blackout, member: Membership) -> Blackout:
    ends = [end_ms for end_ms in (blackout.until_ms, member.until_ms) if end_ms is not None]
    from_ms = max(blackout.from_ms, member.from_ms)
    return blackout._replace(from_ms=from_ms, until_ms=min(ends, default=None))
