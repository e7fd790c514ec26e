"""Reading of the rule book: calendars and blackouts, as they are now or as they were."""

import json
import logging
import secrets
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.database.rows import bulk
from app.domain.calendars.blackouts import Afterwards, Blackout
from app.domain.calendars.calendar import Calendar, DayKind, UnknownDays
from app.domain.calendars.rule_book import CalendarVersion, Membership, RuleBook
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, check_schedule
from app.errors import InvalidInput
from app.models.calendar import BlackoutJob, JobBlackout, JobCalendar, RuleChange
from app.models.calendar import CalendarVersion as VersionRow

logger = logging.getLogger(__name__)

#: weekdays as a version has them, from Monday on
WEEKDAYS: Final = "1234567"
#: values of a day that has a name: its kind, and that
NAMED: Final = 2
_KINDS: Final = [kind.value for kind in DayKind]
_UNKNOWN: Final = [rule.value for rule in UnknownDays]
#: blackouts that ended so long ago concern no instant that a scan may still find
OVER_MS: Millis = 62 * DAY_MS

_VERSION = (
    VersionRow.id,
    VersionRow.name,
    VersionRow.from_ms,
    VersionRow.weekend,
    VersionRow.days,
    VersionRow.valid_until,
    VersionRow.unknown,
)
#: columns of a blackout
BLACKOUT = (
    JobBlackout.id,
    JobBlackout.from_ms,
    JobBlackout.until_ms,
    JobBlackout.cron,
    JobBlackout.duration_s,
    JobBlackout.zone,
    JobBlackout.group_id,
    JobBlackout.job_id,
    JobBlackout.tag,
    JobBlackout.afterwards,
    JobBlackout.reason,
)
_NUMBER = select(func.max(RuleChange.number))


def find_number(session: Session) -> int:
    """Return the number of the rule book; 0: there is nothing in it yet."""
    return session.scalar(_NUMBER) or 0


def insert_change(session: Session, *, now_ms: Millis) -> int:
    """Give the rule book a new number, and return it; the caller holds the schedule lock."""
    number = max(now_ms * 1_000 + secrets.randbelow(1_000), find_number(session) + 1)
    session.execute(delete(RuleChange))
    session.add(RuleChange(number=number))
    session.flush()
    return number


def read_book(session: Session, *, since_ms: Millis | None = None) -> RuleBook:
    """Return the latest versions of the calendars, and the blackouts that are not long over.

    ``since_ms``: those that were over later than that.
    """
    number = find_number(session)
    versions = select(*_VERSION).join(JobCalendar, JobCalendar.version_id == VersionRow.id)
    over_ms = number // 1_000 - OVER_MS if since_ms is None else since_ms
    return _book(session, number, bulk.read_rows(session, versions), over_ms)


def read_history(session: Session, names: Collection[str], *, since_ms: Millis) -> RuleBook:
    """Return the versions of these calendars that held since ``since_ms``, and the blackouts since then."""
    rows: Sequence[Sequence[Any]] = ()
    if names:
        of_names = VersionRow.name.in_(list(names))
        begins = select(VersionRow.name, func.max(VersionRow.from_ms).label("from_ms"))
        first = begins.where(of_names, VersionRow.from_ms <= since_ms).group_by(VersionRow.name).subquery()
        versions = select(*_VERSION).outerjoin(first, first.c.name == VersionRow.name)
        versions = versions.where(of_names, VersionRow.from_ms >= func.coalesce(first.c.from_ms, 0))
        rows = bulk.read_rows(session, versions.order_by(VersionRow.from_ms, VersionRow.id))
    return _book(session, 0, rows, since_ms)


def _book(session: Session, number: int, versions: Sequence[Sequence[Any]], since_ms: Millis) -> RuleBook:
    calendars: defaultdict[str, list[CalendarVersion]] = defaultdict(list)
    for _, name, from_ms, *values in versions:
        calendars[name].append(CalendarVersion(from_ms, calendar_of(name, *values)))
    blackouts = _blackouts(session, since_ms)
    members = _members(session, [blackout.id for blackout in blackouts if blackout.tag])
    return RuleBook(number, dict(calendars), blackouts, members)


def _blackouts(session: Session, since_ms: Millis) -> list[Blackout]:
    """Return the blackouts that reach later than ``since_ms``, and those from before that they may touch.

    Those that touch count as one, which runs something at its end if any of them does.
    """
    while True:
        lasting = or_(JobBlackout.until_ms.is_(None), JobBlackout.until_ms > since_ms)
        query = select(*BLACKOUT).where(lasting).order_by(JobBlackout.id)
        blackouts = [blackout_of(row) for row in bulk.read_rows(session, query)]
        first_ms = min(
            (blackout.from_ms for blackout in blackouts if not blackout.cron), default=since_ms + 1
        )
        if first_ms > since_ms:
            return blackouts
        since_ms = first_ms - 1


def _members(session: Session, blackout_ids: Collection[int]) -> dict[int, list[Membership]]:
    members: defaultdict[int, list[Membership]] = defaultdict(list)
    if blackout_ids:
        rows = select(BlackoutJob.blackout_id, BlackoutJob.job_id, BlackoutJob.from_ms, BlackoutJob.until_ms)
        of_them = rows.where(BlackoutJob.blackout_id.in_(list(blackout_ids))).order_by(BlackoutJob.id)
        for blackout_id, *values in bulk.read_rows(session, of_them):
            members[blackout_id].append(Membership(*values))
    return dict(members)


def blackout_of(row: Sequence[Any]) -> Blackout:
    """Return the blackout of a row of ``BLACKOUT``; one whose windows cannot be read is never on."""
    blackout = Blackout._make(row)
    runs_once = blackout.afterwards == Afterwards.RUN_ONCE
    blackout = blackout._replace(afterwards=Afterwards.RUN_ONCE if runs_once else Afterwards.SKIP)
    if not blackout.cron or (blackout.duration_s > 0 and _is_readable(blackout.cron, blackout.zone)):
        return blackout
    return blackout._replace(until_ms=blackout.from_ms)


@lru_cache(maxsize=1_024)
def _is_readable(cron: str, zone: str) -> bool:
    try:
        check_schedule(Schedule(ScheduleType.CRON, cron, zone))
    except InvalidInput as exc:
        logger.warning("blackout not readable, it is never on cron=%s zone=%s reason=%s", cron, zone, exc)
        return False
    return True


@lru_cache(maxsize=256)
def calendar_of(name: str, weekend: str, days: str, valid_until: str, unknown: str) -> Calendar:
    """Return the calendar of a version: the same for the same version.

    What another program has written and cannot be read is left out.
    """
    kinds, names = dict[date, DayKind](), dict[date, str]()
    for text, value in _read_days(name, days).items():
        kind, day_name = value if isinstance(value, list) and len(value) == NAMED else (value, "")
        day = _read_day(text)
        if day is None or kind not in _KINDS:
            continue
        kinds[day] = DayKind(kind)
        if day_name:
            names[day] = str(day_name)
    return Calendar(
        name,
        frozenset(WEEKDAYS.index(number) + 1 for number in weekend.split(",") if number in WEEKDAYS),
        kinds,
        names,
        _read_day(valid_until),
        UnknownDays(unknown) if unknown in _UNKNOWN else UnknownDays.WEEKDAY,
    )


def _read_days(name: str, text: str) -> dict[str, Any]:
    try:
        days = json.loads(text or "{}")
    except (ValueError, RecursionError):
        days = None
    if not isinstance(days, dict):
        logger.warning("days of a calendar not readable, it has none name=%s", name)
        return {}
    return days


def _read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
