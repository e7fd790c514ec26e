"""Chinese sentences of the shapes of cron expressions, simplified and traditional."""

from collections.abc import Iterable
from typing import Final

from app.domain.schedules.cron.days import (
    DayRule,
    DaysOfMonth,
    DaysOfWeek,
    LastDay,
    LastWeekday,
    LastWorkday,
    NearestWorkday,
    NthWeekday,
    bits_of,
)
from app.domain.schedules.sentences.shapes import (
    Beat,
    Clock,
    HourBeat,
    HourlyAt,
    Shape,
    Times,
    clock_text,
    is_span,
    is_span_of_week,
    monday_first,
    spans_text,
    weekdays_of,
)

#: simplified characters of these sentences, and the traditional ones
_TRADITIONAL: Final = str.maketrans("钟时个从数后点周", "鐘時個從數後點週")
#: from 1 = Sunday; 0 is Saturday as well
_WEEKDAYS: Final = ("六", "日", "一", "二", "三", "四", "五", "六")
_UNITS: Final = {"second": "秒", "minute": "分钟", "hour": "小时"}
_WORKDAYS: Final = (2, 3, 4, 5, 6)


def to_simplified(shape: Shape) -> str:
    """Return "工作日 08:00" or "每 5 分钟（工作日 09:00–18:59）"."""
    days = _days(shape.days, shape.months)
    if isinstance(shape.clock, Times):
        return f"{days} {_list(clock_text(*time) for time in shape.clock.times)}"
    qualifier = " ".join(part for part in (days if shape.days else "", spans_text(shape.clock, "、")) if part)
    words = _clock(shape.clock)
    return f"{words}（{qualifier}）" if qualifier else words


def traditional(shape: Shape) -> str:
    """Return the sentence in traditional characters."""
    return to_simplified(shape).translate(_TRADITIONAL)


def _clock(clock: Clock) -> str:
    match clock:
        case Beat():
            words = f"每 {clock.step} {_UNITS[clock.unit]}" if clock.step > 1 else f"每{_UNITS[clock.unit]}"
            if clock.restarts:
                return f"每小时从第 {clock.first} 分起，{words}"
            return f"{words}，从第 {clock.first} 分起" if clock.first else words
        case HourlyAt():
            if clock.minutes == (0,):
                return "每小时整点"
            return f"每小时第 {_list(map(str, clock.minutes))} 分"
        case HourBeat():
            words = f"每 {clock.step} 小时"
            if clock.last is not None or not (clock.first or clock.minute):
                return words
            return f"{words}，从 {clock_text(clock.first, clock.minute)} 起"
    raise TypeError(clock)


def _days(rule: DayRule | None, months: tuple[int, ...]) -> str:
    match rule:
        case None:
            return "每天"
        case DaysOfWeek():
            return _week(weekdays_of(rule))
        case DaysOfMonth():
            return _month_days(bits_of(rule.mask), months)
        case LastDay():
            return f"每月倒数第 {rule.offset + 1} 天" if rule.offset else "每月最后一天"
        case LastWorkday():
            return "每月最后一个工作日"
        case NearestWorkday():
            return f"每月最接近 {rule.entry_day} 日的工作日"
        case LastWeekday():
            return f"每月最后一个周{_WEEKDAYS[rule.weekday]}"
        case NthWeekday():
            return f"每月第 {rule.nth} 个周{_WEEKDAYS[rule.weekday]}"
    raise TypeError(rule)


def _week(days: tuple[int, ...]) -> str:
    if days == _WORKDAYS:
        return "工作日"
    weekdays = monday_first(days)
    names = [f"周{_WEEKDAYS[day]}" for day in weekdays]
    if is_span_of_week(weekdays):
        return f"每{names[0]}至{names[-1]}"
    return f"每{_list(names)}"


def _month_days(days: tuple[int, ...], months: tuple[int, ...]) -> str:
    numbers = f"{days[0]}–{days[-1]}" if is_span(days) else _list(map(str, days))
    month = f"每年 {_list(map(str, months))} 月" if months else "每月"
    return f"{month} {numbers} 日"


def _list(texts: Iterable[str]) -> str:
    return "、".join(texts)
