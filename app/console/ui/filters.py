"""Template filters: instants in the reader's zone, durations, outcomes of runs."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import cast
from zoneinfo import ZoneInfo

from flask import Flask, g
from flask_babel import format_decimal, format_timedelta, get_locale, get_timezone
from markupsafe import Markup, escape

from app.clock import HOUR_MS, LATEST_MS, MINUTE_MS, SECOND_MS, Millis, now_ms
from app.console.web.language import _
from app.domain.alarms.muting import UNTIL_UNDONE_MS
from app.domain.enums import HandleCode, TriggerCode
from app.domain.runs.logical_times import shown_logical_of
from app.domain.runs.outcome import outcome_of
from app.domain.runs.statistics import ended_duration_ms
from app.domain.schedules.planning import is_capped
from app.domain.schedules.schedule import RESTING
from app.domain.text.relative_times import Nearness, nearness
from app.models.job import AFTER_THE_CURRENT_RUN
from app.models.log import JobLog
from app.store.runs.recent import Run

#: threshold with which Babel does not go over to weeks
DAYS_ONLY = 1_000
_NUMBER_BEFORE_WORD = re.compile("(?<=[0-9])(?=[\u4e00-\u9fff])")
#: shorter durations are shown with a decimal
TENTHS_BELOW_MS: Millis = 10 * SECOND_MS
#: cached relative times, all languages together
DISTANCES_KEPT = 4_096
#: cached instants, all zones together; a list of jobs has a thousand, and its refreshes the same
INSTANTS_KEPT = 8_192
#: cached formatted numbers, all languages together
NUMBERS_KEPT = 4_096


def reader_zone() -> ZoneInfo:
    """Return the reader's time zone; determined once per request."""
    try:
        return cast(ZoneInfo, g.reader_zone)
    except AttributeError:
        g.reader_zone = ZoneInfo(str(get_timezone()))
        return cast(ZoneInfo, g.reader_zone)


def absolute(ms: Millis) -> str:
    """Return ``2024-05-01 10:00:00`` in the reader's zone."""
    return absolute_in(ms, reader_zone())


def absolute_in(ms: Millis, zone: ZoneInfo) -> str:
    """Return ``2024-05-01 10:00:00`` in a zone."""
    return _format_instant(min(ms, LATEST_MS) // 1000, zone, " ")


def iso(ms: Millis) -> str:
    """Return ``2024-05-01T02:00:00Z``, for ``<time datetime>``."""
    return _format_instant(min(ms, LATEST_MS) // 1000, UTC, "T") + "Z"


@lru_cache(INSTANTS_KEPT)
def _format_instant(second: int, zone: tzinfo, separator: str) -> str:
    """Format an instant without the zone; strftime() takes three times as long."""
    return datetime.fromtimestamp(second, zone).isoformat(separator, "seconds")[:19]


def relative(ms: Millis) -> str:
    """Return ``3 minutes ago``, ``now``, ``in 2 hours`` or ``tomorrow 06:00`` in the reader's language.

    Beyond 30 days it is the date. js/live.js does the same while a page is open.
    """
    near, count = nearness(ms, reader_zone(), now_ms=now_ms())
    match near:
        case Nearness.JUST_NOW:
            return _("just now")
        case Nearness.NOW:
            return _("now")
        case Nearness.SECONDS:
            return _distance(timedelta(seconds=count), get_locale())
        case Nearness.DAYS:
            return _distance(timedelta(days=count), get_locale())
        case Nearness.DATE:
            return absolute(ms)[:10]
    time = absolute(ms)[11:16]
    if near is Nearness.TODAY:
        return _("today %(time)s", time=time)
    return (
        _("tomorrow %(time)s", time=time) if near is Nearness.TOMORROW else _("yesterday %(time)s", time=time)
    )


@lru_cache(DISTANCES_KEPT)
def _distance(distance: timedelta, _locale: object) -> str:
    """Return ``in 2 hours``; cached, because jobs of a list are often due in the same second."""
    granularity = "day" if abs(distance) >= timedelta(days=1) else "second"
    threshold = DAYS_ONLY if granularity == "day" else 1.5
    text = format_timedelta(distance, granularity=granularity, add_direction=True, threshold=threshold)
    return space_units(str(text))


def age(ms: Millis) -> str:
    """Return ``3 days`` or ``2 hours``: how long ago an instant was, in one unit, at least a minute."""
    length = timedelta(milliseconds=max(MINUTE_MS, now_ms() - ms))
    granularity, threshold = ("day", DAYS_ONLY) if length.days else ("second", 1)
    return space_units(str(format_timedelta(length, granularity=granularity, threshold=threshold)))


def space_units(text: str) -> str:
    """Return text with a blank between a number and a Chinese word, and the short word for seconds."""
    return _NUMBER_BEFORE_WORD.sub(" ", text).replace("秒钟", "秒")


def instant(ms: Millis | None, exact: bool = False, absent: str = "–") -> Markup:
    """Render an instant as relative time with the full time on hover; ``exact`` swaps the two.

    Not a macro, because a list has hundreds.
    """
    if not ms:
        return Markup('<span class="muted">{}</span>').format(absent)
    return _time(ms, relative(ms), exact, reader_zone())


@lru_cache(INSTANTS_KEPT)
def _time(ms: Millis, distance: str, exact: bool, zone: ZoneInfo) -> Markup:
    full, near = absolute_in(ms, zone), escape(distance)
    title, text = (near, f'<span class="day">{full[:10]}</span>{full[10:]}') if exact else (full, near)
    return Markup(  # nosec B704  # dates, a number and an escaped name
        f'<time datetime="{iso(ms)}" title="{title} ({zone.key}) · epoch {ms // 1000}">{text}</time>'
    )


def duration(ms: Millis | None) -> str:
    """Return ``850 ms``, ``1.2 s``, ``12 s``, ``3 min 20 s`` or ``5 h 2 min``; empty for None.

    0 is what remains of a duration known in whole seconds: ``< 1 s``.
    """
    if ms is None:
        return ""
    if ms <= 0:
        return _("< 1 s")
    if ms < SECOND_MS:
        return _("%(n)s ms", n=ms)
    if ms < TENTHS_BELOW_MS:
        return _("%(n)s s", n=f"{ms // 100 / 10:.1f}".removesuffix(".0"))
    if ms < MINUTE_MS:
        return _("%(n)s s", n=ms // SECOND_MS)
    if ms < HOUR_MS:
        return _("%(m)s min %(s)s s", m=ms // MINUTE_MS, s=ms % MINUTE_MS // SECOND_MS)
    return _("%(h)s h %(m)s min", h=ms // HOUR_MS, m=ms % HOUR_MS // MINUTE_MS)


def outcome(log: JobLog | Run | None) -> str:
    """Return the outcome of a run (see ``run_state`` in macros/badge.html); empty without a run."""
    return outcome_of(log.trigger_code, log.handle_code, log.killed) if log is not None else ""


def run_duration(log: JobLog | Run) -> Millis | None:
    """Return the duration of a run so far; None if it never ran.

    In whole seconds where its milliseconds are not stored: while it runs, adopted rows, rows of a Java admin.
    """
    if not log.trigger_time or log.trigger_code not in (TriggerCode.ACCEPTED, TriggerCode.NONE):
        return None
    if log.duration_ms is not None or log.handle_code != HandleCode.NONE:
        return ended_duration_ms(log.duration_ms, trigger_ms=log.trigger_time, handle_ms=log.handle_time)
    return now_ms() - log.trigger_time if log.trigger_code == TriggerCode.ACCEPTED else None


def logical_time(log: JobLog) -> Millis | None:
    """Return the logical time of a run where it is shown."""
    return shown_logical_of(log)


def muted_until(until_ms: Millis) -> str:
    """Return until when alarms are muted, as a label."""
    return (
        _("Muted, no end")
        if until_ms >= UNTIL_UNDONE_MS
        else _("Muted until %(time)s", time=absolute(until_ms))
    )


def next_time_label(ms: Millis) -> str:
    """Return the text for a next time that is not an instant; empty for an instant."""
    if ms == AFTER_THE_CURRENT_RUN:
        return _("after the current run")
    if ms == RESTING:
        return _("after the blackout")
    return "" if ms > 0 else "–"


def host(address: str) -> str:
    """Return ``10.0.0.7:9999`` for ``http://10.0.0.7:9999/``."""
    return address.partition("://")[2].rstrip("/") or address


def number(value: int) -> str:
    """Return ``12,345``, formatted for the reader's language."""
    return _number(value, get_locale())


def comma_list(texts: Iterable[object]) -> str:
    """Return ``a, b, c``, with the separator of the reader's language."""
    return _(", ").join(map(str, texts))


def skip_count(count: int) -> str:
    """Return how many instants were skipped: ``3,000+`` if counting ended there."""
    return f"{number(count)}+" if is_capped(count) else number(count)


@lru_cache(NUMBERS_KEPT)
def _number(value: int, _locale: object) -> str:
    return str(format_decimal(value))


def html_language() -> str:
    """Return the language of the page for ``<html lang>``: ``zh-Hans``, ``zh-Hant`` or ``en``."""
    locale = get_locale()
    return f"{locale.language}-{locale.script}" if locale and locale.script else "en"


def init_app(app: Flask) -> None:
    """Register the filters with the templates."""
    for filter_ in (
        absolute,
        iso,
        relative,
        duration,
        outcome,
        run_duration,
        logical_time,
        age,
        muted_until,
        next_time_label,
        host,
        number,
        comma_list,
        skip_count,
    ):
        app.add_template_filter(filter_)
    app.add_template_global(instant)
    app.add_template_global(lambda: str(reader_zone()), "frame_zone")
