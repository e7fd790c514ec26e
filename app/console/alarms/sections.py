"""Shared values of the pages of alarms: tabs, health of channels with bars, and mutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from app.clock import Millis
from app.console.ui.filters import absolute, reader_zone
from app.console.ui.labels import answer_text, as_sentence
from app.console.web.language import _
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.channel_health import DayCount
from app.domain.alarms.muting import UNTIL_UNDONE_MS
from app.services.alarms import mutes
from app.services.alarms.channel_health import DAYS, ChannelHealth, find_health
from app.services.alarms.mutes import Muted
from app.services.report.reporting import midnight_ms

#: pixels: a bar, its slot, and the height of all
BAR, SLOT, HEIGHT = 10, 14, 24
#: pixels of a part of a bar, however small its value
LEAST = 2


@dataclass(frozen=True, slots=True)
class BarPart:
    """Rectangle of a bar; ``kind`` is its class."""

    y: int
    height: int
    kind: str


@dataclass(frozen=True, slots=True)
class DayBar:
    """Bar of a day, with what it says."""

    x: int
    title: str
    parts: Sequence[BarPart]


@dataclass(frozen=True, slots=True)
class Sections:
    """Values of the tabs, and of the boxes beside the inbox."""

    #: the broken channels first, then those with a problem
    health: Sequence[ChannelHealth]
    mutes: Sequence[Muted]
    #: more mutes are in force than were read
    has_more_mutes: bool
    #: dates of the days of the bars
    days: Sequence[str]
    operable: frozenset[int]

    @property
    def broken(self) -> int:
        """Number of broken channels."""
        return sum(channel.health.is_broken for channel in self.health)

    def may_operate(self, row: Muted) -> bool:
        """Whether the user may end a mute."""
        return row.group_id in self.operable

    def short_time(self, ms: Millis) -> str:
        """Return an instant as a time of today, or as a day and time."""
        text = absolute(ms)[:16]
        return text[11:] if text[:10] == self.days[-1] else text

    def end(self, row: Muted) -> str:
        """Return the end of a mute that has none, in words; empty for an instant."""
        return _("no end") if row.mute.until_ms >= UNTIL_UNDONE_MS else ""

    def problem(self, channel: ChannelHealth) -> str:
        """Return the last error of a channel in the reader's language, as a sentence."""
        return as_sentence(answer_text(channel.health.problem))

    def bars(self, channel: ChannelHealth) -> list[DayBar]:
        """Return the bars of a channel."""
        return day_bars(channel.health.days, self.days)


def read_sections(
    session: Session, actor: Actor, *, now_ms: Millis, after: tuple[Millis, int] = (0, 0)
) -> Sections:
    """Read what all three pages show; ``after``: end and id of the mute before the first."""
    starts = day_starts(now_ms)
    rows = mutes.list_muted(session, actor, now_ms=now_ms, limit=mutes.LISTED_MAX + 1, after=after)
    health = find_health(session, actor=actor, now_ms=now_ms, days=starts)
    return Sections(
        sorted(health, key=lambda channel: (not channel.health.is_broken, not channel.health.problem)),
        rows[: mutes.LISTED_MAX],
        len(rows) > mutes.LISTED_MAX,
        [datetime.fromtimestamp(start / 1000, reader_zone()).date().isoformat() for start in starts],
        frozenset(mute.group_id for mute in rows if actor.may(mute.group_id, Right.OPERATE)),
    )


def day_starts(now_ms: Millis) -> list[Millis]:
    """Return when the last days began in the reader's zone, today last."""
    return [midnight_ms(now_ms, reader_zone().key, number) for number in reversed(range(DAYS))]


def day_bars(counts: Sequence[DayCount], days: Sequence[str]) -> list[DayBar]:
    """Return a bar for each day, failed messages over the others; a day without any has a line."""
    most = max((count.sent + count.failed for count in counts), default=0)
    bars = []
    for number, (count, day) in enumerate(zip(counts, days, strict=False)):
        sent_height, failed_height = _height(count.sent, most), _height(count.failed, most)
        parts = [BarPart(HEIGHT - sent_height, sent_height, "ok")] if sent_height else []
        if failed_height:
            parts.append(BarPart(max(0, HEIGHT - sent_height - failed_height), failed_height, "fail"))
        title = _("%(day)s: %(sent)s sent, %(failed)s failed", day=day, sent=count.sent, failed=count.failed)
        bars.append(DayBar(number * SLOT, title, parts or [BarPart(HEIGHT - LEAST, LEAST, "none")]))
    return bars


def _height(count: int, most: int) -> int:
    return max(LEAST, count * (HEIGHT - LEAST) // most) if count else 0
