"""Reader of English sentences about crons: what they mean, found without the code that writes them."""

import re
from calendar import day_name, month_name, monthrange
from collections.abc import Callable
from datetime import datetime
from typing import Final

Rule = Callable[[datetime], bool]

_DAYS: Final = {name: number for number, name in enumerate(day_name)}
_MONTHS: Final = {name: number for number, name in enumerate(month_name) if name}
_TIME: Final = r"\d\d:\d\d(?::\d\d)?"
_TIMES: Final = rf"{_TIME}(?:(?:, | and ){_TIME})*"
_SPAN: Final = r"(\d\d):(\d\d)–(\d\d):(\d\d)"
_ORDINALS: Final = ("First", "Second", "Third", "Fourth", "Fifth")
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600}


def rule_of(sentence: str) -> Rule:
    """Return whether a sentence allows a local time; raise ValueError if it is not one of the known form."""
    at = re.fullmatch(rf"(?!Every|Hourly)(.+) at ({_TIMES})", sentence)
    if at:
        return _all_of(_days(at[1]), _times(at[2]))
    spans = [tuple(map(int, span)) for span in re.findall(_SPAN, sentence)]
    clock, _, rest = re.sub(rf"[, ]*{_SPAN}(?: and {_SPAN})*$", "", sentence).partition(", ")
    if clock.startswith("Hourly") and rest.startswith(":"):
        listed, _, rest = rest.partition(", ")
        clock += f", {listed}"
    rules = [_clock(clock)]
    if rest:
        rules.append(_days(rest[0].upper() + rest[1:]))
    if spans:
        rules.append(
            lambda time: any(
                first * 60 + first_minute <= time.hour * 60 + time.minute <= last * 60 + last_minute
                for first, first_minute, last, last_minute in spans
            )
        )
        if (every := re.match(r"Every (\d+) hours", clock)) is not None:
            first, minute, _last, _minute = spans[0]
            rules[0] = lambda time: (
                (time.hour - first) % int(every[1]) == 0 and (time.minute, time.second) == (minute, 0)
            )
    return _all_of(*rules)


def _all_of(*rules: Rule) -> Rule:
    return lambda time: all(rule(time) for rule in rules)


def _times(text: str) -> Rule:
    listed = {time if time.count(":") > 1 else f"{time}:00" for time in re.findall(_TIME, text)}
    return lambda time: f"{time:%H:%M:%S}" in listed


def _clock(text: str) -> Rule:
    if text.startswith("Hourly at "):
        minutes = {int(number) for number in re.findall(r":(\d\d)", text)}
        return lambda time: time.minute in minutes and time.second == 0
    match = re.fullmatch(
        r"Every (\d+ )?(second|minute|hour)s?(?: (?:from|at) (\d\d)?:(\d\d))?( of each hour)?", text
    )
    if not match:
        raise ValueError(text)
    step_s, unit_s = int(match[1] or 1) * _SECONDS[match[2]], _SECONDS[match[2]]
    first_s = int(match[3] or 0) * 3600 + int(match[4] or 0) * 60

    def allows(time: datetime) -> bool:
        passed_s = time.minute * 60 + time.second
        if unit_s == 3600:
            passed_s += time.hour * 3600
        return passed_s >= first_s and (passed_s - first_s) % step_s == 0

    return allows


def _days(text: str) -> Rule:
    if text == "Daily":
        return lambda time: True
    if text.startswith(("Monthly on ", "Yearly on ", "On day")):
        return _days_of_month(text)
    return _rule_of_month(text) if text.endswith(" of the month") else _weekdays(text)


def _weekdays(text: str) -> Rule:
    if text in ("Weekdays", "Weekends"):
        return lambda time: (time.weekday() < 5) == (text == "Weekdays")
    if span := re.fullmatch(r"(\w+day) to (\w+day)", text):
        first, last = _DAYS[span[1]], _DAYS[span[2]]
        return lambda time: first <= time.weekday() <= last
    days = {_DAYS[name] for name in re.findall(r"(\w+day)s", text)}
    if not days:
        raise ValueError(text)
    return lambda time: time.weekday() in days


def _days_of_month(text: str) -> Rule:
    months = {_MONTHS[name] for name in re.findall(r"[A-Z]\w+", text) if name in _MONTHS} or set(range(1, 13))
    if span := re.search(r"(\d+)–(\d+)", text):
        days = set(range(int(span[1]), int(span[2]) + 1))
    else:
        days = {int(number) for number in re.findall(r"\d+", text)}
    return lambda time: time.day in days and time.month in months


def _rule_of_month(text: str) -> Rule:
    if text == "Last weekday of the month":
        return lambda time: (
            time.day == max(day for day in _month_of(time) if time.replace(day=day).weekday() < 5)
        )
    if near := re.fullmatch(r"Weekday nearest to day (\d+) of the month", text):
        return lambda time: (
            time.day
            == min(
                (day for day in _month_of(time) if time.replace(day=day).weekday() < 5),
                key=lambda day: abs(day - int(near[1])),
            )
        )
    if before := re.fullmatch(r"(?:(\d+) days? before the last|Last) day of the month", text):
        return lambda time: time.day == monthrange(time.year, time.month)[1] - int(before[1] or 0)
    word, weekday = text.split(" ")[:2]
    number = -1 if word == "Last" else _ORDINALS.index(word)

    def allows(time: datetime) -> bool:
        days = [day for day in _month_of(time) if time.replace(day=day).weekday() == _DAYS[weekday]]
        return number < len(days) and time.day == days[number]

    return allows


def _month_of(time: datetime) -> range:
    return range(1, monthrange(time.year, time.month)[1] + 1)
