"""Fates of instants in words: moved, skipped, merged, or covered by a blackout."""

from datetime import datetime
from zoneinfo import ZoneInfo

from flask_babel import format_date, get_locale

from app.clock import LATEST_MS, Millis
from app.console.web.language import _
from app.domain.calendars.calendar import DayKind
from app.domain.calendars.day_rule import DayRule, On
from app.domain.calendars.effective import JobRules
from app.domain.calendars.preview import Fate, PreviewInstant
from app.domain.schedules.schedule import Schedule, zone

#: skeleton of a day as it stands in a sentence: Sat, Oct 3
_DAY = "MMMEd"


def fate_text(instant: PreviewInstant, schedule: Schedule) -> str:
    """Return "skipped: 国庆节" or "moved from Sat, Oct 3"; empty for an instant that simply runs."""
    local = zone(schedule.time_zone)
    match instant.fate:
        case Fate.MOVED:
            day = day_text(instant.raw_ms, local)
            name = instant.day_name
            text = (
                _("moved from %(day)s: %(name)s", day=day, name=name)
                if name
                else _("moved from %(day)s", day=day)
            )
        case Fate.SKIPPED:
            text = _("skipped: %(name)s", name=_why_skipped(instant, schedule))
        case Fate.MERGED:
            text = _("merged into %(time)s", time=time_text(instant.into_ms or 0, local))
        case Fate.BLACKOUT if instant.due_ms is not None:
            text = _("runs at the end of a blackout: %(reason)s", reason=instant.reason)
        case Fate.BLACKOUT:
            text = _("blackout: %(reason)s", reason=instant.reason)
        case _:
            text = ""
    parts = [text] if text else []
    if instant.has_more:
        parts.append(_("and more on this day"))
    if not instant.is_known:
        parts.append(_("the calendar does not know this day yet"))
    return " · ".join(parts)


def day_text(ms: Millis, local: ZoneInfo) -> str:
    """Return a day as it stands in a sentence: "Sat, Oct 3"."""
    locale = get_locale()
    pattern: str | None = locale.datetime_skeletons[_DAY].pattern if locale is not None else None
    return str(format_date(_moment(ms, local).date(), pattern))


def time_text(ms: Millis, local: ZoneInfo) -> str:
    """Return a day and the time of day: "Mon, Oct 5 06:00"."""
    return f"{day_text(ms, local)} {_moment(ms, local):%H:%M}"


def _moment(ms: Millis, local: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(min(ms, LATEST_MS) / 1000, local)


def _why_skipped(instant: PreviewInstant, schedule: Schedule) -> str:
    rule = schedule.rules.day_rule if isinstance(schedule.rules, JobRules) else None
    if rule is not None and _is_counted_out(instant, rule):
        return _("not the chosen day of the month")
    if instant.day_name:
        return instant.day_name
    if instant.day_kind is DayKind.WORKDAY:
        return _("workday")
    return _("weekend") if instant.by_weekday else _("holiday")


def _is_counted_out(instant: PreviewInstant, rule: DayRule) -> bool:
    """Whether the day is of the kind of the rule, but not the one of the month that it counts."""
    kind = DayKind.WORKDAY if rule.rule.on is On.WORKDAYS else DayKind.HOLIDAY
    return rule.rule.nth is not None and instant.day_kind is kind
