"""Figures: four numbers of the last week, each with a small chart of seven days and its change.

In the first days of an installation their names have the days since its first run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from flask import url_for
from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.console.ui.filters import number
from app.console.ui.lists.ranges import TimeRange, day_names
from app.console.web.language import _, ngettext
from app.domain.access.permissions import Actor
from app.domain.report.trends import (
    READ_DAYS,
    WEEK,
    Counts,
    Trend,
    days_since_first_run,
    success_rate,
    trend_of,
)
from app.services.report import dashboard
from app.services.report.dashboard import Board
from app.services.report.reporting import midnight_ms

#: pixels of a small chart: width of a day and of its bar, height, radius of the last point
DAY_WIDTH, BAR_WIDTH, HEIGHT, POINT = 16, 10, 28, 2
#: changes below are none: percent, and points
SAME_PERCENT, SAME_POINTS = 0.5, 0.05


@dataclass(frozen=True, slots=True)
class Spark:
    """Small chart: bars as x, y and height, or a line through points as x, y."""

    kind: str
    bars: Sequence[tuple[int, int, int]] = ()
    points: Sequence[tuple[int, int]] = ()

    @property
    def line(self) -> str:
        """Points of the line."""
        return " ".join(f"{x},{y}" for x, y in self.points)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number: its name, unit, a note such as its change, and the page with its details."""

    name: str
    value: str
    unit: str
    href: str
    note: str = ""
    #: ``danger`` if it got worse
    tone: str = ""
    spark: Spark | None = None


def figures(session: Session, actor: Actor, board: Board, *, zone: ZoneInfo, now_ms: Millis) -> list[Figure]:
    """Return the figures of a board."""
    days, share = _days(session, actor, zone, now_ms)
    trend, week, span = trend_of(days, share_of_today=share), days[-WEEK:], days_since_first_run(days)
    return [
        _runs(trend, week, span),
        _success_rate(trend, week, span),
        _failing(board, trend, week, span),
        _instances(board, actor),
    ]


def _days(session: Session, actor: Actor, zone: ZoneInfo, now_ms: Millis) -> tuple[list[Counts], float]:
    """Return the counted ones of the last READ_DAYS days, oldest first, and how much of today is over."""
    first_ms, today_ms = midnight_ms(now_ms, zone.key, READ_DAYS - 1), midnight_ms(now_ms, zone.key)
    chart = dashboard.chart(session, actor, from_ms=first_ms, to_ms=now_ms)
    by_day = {day.day: Counts(day.success, day.failed, day.running) for day in chart.days}
    names = day_names(TimeRange(first_ms, today_ms), zone)
    days = [by_day.get(name, Counts()) for name in names if name > chart.uncounted]
    return days, min(1, (now_ms - today_ms) / DAY_MS)


def _runs(trend: Trend, week: Sequence[Counts], span: int) -> Figure:
    name = _("Runs today") if span == 1 else _("Runs, %(num)s days", num=span)
    note = ""
    if trend.runs_change is not None:
        change = f"{number(abs(round(trend.runs_change)))}%"
        note = _("as many as the week before")
        if trend.runs_change >= SAME_PERCENT:
            note = _("+%(change)s on the week before", change=change)
        elif trend.runs_change <= -SAME_PERCENT:
            note = _("−%(change)s on the week before", change=change)
    spark = _bars("info", [day.total for day in week])
    return Figure(name, number(trend.runs), "", url_for("logs.index", range="week"), note, "", spark)


def _success_rate(trend: Trend, week: Sequence[Counts], span: int) -> Figure:
    name = _("Success rate today") if span == 1 else _("Success rate, %(num)s days", num=span)
    note, tone = "", ""
    change = trend.rate_change
    if change is not None and abs(change) >= SAME_POINTS:
        sign, tone = ("+", "") if change > 0 else ("−", "danger")
        note = _("%(change)s points", change=f"{sign}{abs(change):.1f}")
    value = "–" if trend.success_rate is None else f"{trend.success_rate:.1f}".removesuffix(".0")
    unit = "" if trend.success_rate is None else "%"
    failures = url_for("logs.index", logStatus=2, range="week")
    return Figure(name, value, unit, failures, note, tone, _line(week, tone or "info"))


def _failing(board: Board, trend: Trend, week: Sequence[Counts], span: int) -> Figure:
    failed = number(trend.failed)
    note = (
        ngettext("%(n)s failure today", "%(n)s failures today", trend.failed, n=failed)
        if span == 1
        else ngettext(
            "%(n)s failure in %(days)s days",
            "%(n)s failures in %(days)s days",
            trend.failed,
            n=failed,
            days=span,
        )
    )
    return Figure(
        _("Failing jobs"),
        number(board.facts.failing),
        _("of %(n)s", n=number(board.jobs)),
        url_for("jobs.index", last="failing") if board.facts.failing else url_for("jobs.index"),
        note if trend.failed else "",
        spark=_bars("danger", [day.failed for day in week]),
    )


def _instances(board: Board, actor: Actor) -> Figure:
    offline = board.facts.offline
    return Figure(
        _("Instances online"),
        number(board.addresses),
        ngettext("in %(num)d executor", "in %(num)d executors", len(board.groups)),
        url_for("groups.index") if actor.is_admin else url_for("jobs.index"),
        ngettext("%(num)d executor is offline", "%(num)d executors are offline", offline) if offline else "",
        "danger" if offline else "",
    )


def _bars(kind: str, counts: Sequence[int]) -> Spark | None:
    """Return a bar for each day, none for a day without any; None if no day has one."""
    top = max(counts, default=0)
    if not top:
        return None
    heights = [max(2, round(HEIGHT * count / top)) if count else 0 for count in counts]
    return Spark(
        kind, bars=[(DAY_WIDTH * place, HEIGHT - tall, tall) for place, tall in enumerate(heights) if tall]
    )


def _line(week: Sequence[Counts], kind: str) -> Spark | None:
    """Return the success rate of the days that have one, its least value at the bottom; None without two."""
    all_rates = [(place, success_rate([day])) for place, day in enumerate(week)]
    day_rates = [(place, rate) for place, rate in all_rates if rate is not None]
    if len(day_rates) < 2:
        return None
    least, most = (choose(rate for _place, rate in day_rates) for choose in (min, max))
    room = HEIGHT - 2 * POINT
    span = most - least or 1
    return Spark(
        kind,
        points=[
            (DAY_WIDTH * place + BAR_WIDTH // 2, POINT + round(room * (most - rate) / span))
            for place, rate in day_rates
        ],
    )
