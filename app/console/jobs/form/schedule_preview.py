"""Preview of a schedule: what it means, and what becomes of its next instants."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from app.clock import LATEST_MS, Millis
from app.console.jobs.form.clock_notes import ClockNote, clock_note, silence_text
from app.console.ui.calendars.fates import fate_text
from app.console.ui.labels import interval_words
from app.console.web.current import translate
from app.console.web.language import _
from app.domain.calendars.preview import PreviewInstant
from app.domain.calendars.preview import preview as preview_instants
from app.domain.calendars.rules import check_rule
from app.domain.enums import ScheduleType
from app.domain.schedules.clock_changes import clock_changes, silence_of
from app.domain.schedules.cron.expression import FIELDS
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.cron_words import describe
from app.domain.schedules.schedule import (
    PREVIEW_COUNT,
    Schedule,
    check_schedule,
    next_times,
    pauses_with_clocks,
)
from app.errors import InvalidInput
from app.store.calendars import current_book

#: instants of a schedule with a calendar or blackouts that are looked at, and of those that do not run shown
LOOKED_AT, OTHERS_SHOWN = 400, 6


@dataclass(frozen=True, slots=True)
class Instant:
    """Instant of the preview; ``text`` is local time in the schedule's zone."""

    ms: Millis
    text: str
    #: UTC offset at that time: ``+02:00``
    offset: str
    #: the offset differs from that of the previous instant: daylight saving time starts or ends in between
    is_shifted: bool = False
    #: changes of the clocks since the previous instant that leave out or move a run
    notes: tuple[ClockNote, ...] = ()
    #: how many other jobs start with it, as a text, and the page that lists them; or empty
    others: str = ""
    others_href: str = ""
    #: what the calendar or a blackout makes of it: a value of Fate, and a sentence; empty without them
    fate: str = ""
    fate_text: str = ""
    #: whether a run starts at this time
    runs: bool = True


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of a schedule: its description and next instants.

    ``error`` is why the schedule is invalid, ``empty`` why it has no instants to show.
    """

    zone: str
    description: str = ""
    times: tuple[Instant, ...] = ()
    error: str = ""
    empty: str = ""
    #: of an invalid cron expression: its fields, and whether they are the wrong one
    parts: tuple[tuple[str, bool], ...] = ()
    #: whether it pauses for an hour when clocks go back
    pauses: bool = False
    #: changes of the clocks within a year, after the instants, that leave out or move a run
    notes: tuple[ClockNote, ...] = ()

    @property
    def runs(self) -> list[Instant]:
        """The instants at which a run starts."""
        return [time for time in self.times if time.runs]

    @property
    def left_out(self) -> int:
        """How many times at which it does not run are shown, if that may not be all; else 0."""
        count = len(self.times) - len(self.runs)
        return count if self.runs and count >= OTHERS_SHOWN else 0


def preview(schedule: Schedule, language: str, *, now_ms: Millis) -> Preview:
    """Return the description and the next five instants of a schedule, or its error."""
    if schedule.type is ScheduleType.NONE:
        return Preview(
            schedule.time_zone,
            empty=_("This job has no schedule: run it once, after other jobs or through the API."),
        )
    if not schedule.conf:
        return Preview(
            schedule.time_zone,
            empty=_("The next run times appear here when the schedule is complete."),
        )
    try:
        check_schedule(schedule)
        check_rule(schedule, current_book.current(), now_ms=now_ms)
        description = _describe(schedule, language)
        fates = _fates(schedule, now_ms)
        instants = [_shown_ms(instant) for instant in fates] or _next_times(schedule, now_ms)
    except (InvalidInput, ValueError) as exc:
        error = translate(getattr(exc, "message", str(exc)))
        return Preview(schedule.time_zone, error=error, parts=_parts(schedule, exc.__cause__))
    if not instants and schedule.type is not ScheduleType.FIX_DELAY:
        reason = silence_text(silence_of(schedule, now_ms=now_ms), schedule.time_zone)
        return Preview(schedule.time_zone, description=description, empty=reason)
    notes = [clock_note(change, schedule.time_zone) for change in clock_changes(schedule, now_ms=now_ms)]
    local = ZoneInfo(schedule.time_zone)
    return Preview(
        schedule.time_zone,
        description=description,
        times=_with_fates(_instants(instants, local, now_ms, notes), fates, schedule),
        empty="" if not fates or any(instant.due_ms for instant in fates) else _nothing_stands(),
        pauses=bool(instants) and pauses_with_clocks(schedule, now_ms=now_ms),
        notes=tuple(note for note in notes if not instants or note.at_ms > instants[-1]),
    )


def _next_times(schedule: Schedule, now_ms: Millis) -> list[Millis]:
    return next_times(schedule, now_ms) if schedule.type is not ScheduleType.FIX_DELAY else []


def _fates(schedule: Schedule, now_ms: Millis) -> list[PreviewInstant]:
    """Return the next instants with what becomes of them; none without a calendar or blackouts.

    Of those that do not run the first are enough: of the third workday of a month there are twenty a month.
    """
    if schedule.rules is None:
        return []
    instants = preview_instants(schedule, now_ms, PREVIEW_COUNT, most=LOOKED_AT)
    others = [instant for instant in instants if instant.due_ms is None][:OTHERS_SHOWN]
    return sorted([*others, *(instant for instant in instants if instant.due_ms is not None)], key=_shown_ms)


def _shown_ms(instant: PreviewInstant) -> Millis:
    return instant.raw_ms if instant.due_ms is None else instant.due_ms


def _with_fates(
    times: Sequence[Instant], fates: Sequence[PreviewInstant], schedule: Schedule
) -> tuple[Instant, ...]:
    if not fates:
        return tuple(times)
    return tuple(
        replace(
            time,
            fate=instant.fate.value,
            fate_text=fate_text(instant, schedule),
            runs=instant.due_ms is not None,
        )
        for time, instant in zip(times, fates, strict=True)
    )


def _nothing_stands() -> str:
    return _("No run at any of these times: the calendar or blackouts leave out all of them.")


def _parts(schedule: Schedule, cause: BaseException | None) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a cron expression with the wrong one marked; nothing if it is not known which."""
    fields = schedule.conf.split()
    names = [field.name for field in FIELDS]
    if not isinstance(cause, InvalidCronExpression) or cause.field not in names[: len(fields)]:
        return ()
    wrong = names.index(cause.field)
    return tuple((text, at == wrong) for at, text in enumerate(fields))


def _describe(schedule: Schedule, language: str) -> str:
    match schedule.type:
        case ScheduleType.CRON:
            return describe(schedule.conf, language)
        case ScheduleType.FIX_RATE | ScheduleType.FIX_DELAY:
            return interval_words(schedule.type, schedule.conf)
        case _:
            return _("Once")


def _instants(
    instants: list[Millis], local: ZoneInfo, now_ms: Millis, notes: list[ClockNote]
) -> tuple[Instant, ...]:
    """Return local times with their offsets; ``is_shifted`` compares the first one with now."""
    moments = [datetime.fromtimestamp(min(ms, LATEST_MS) / 1000, local) for ms in (now_ms, *instants)]
    return tuple(
        Instant(
            ms,
            f"{moment:%Y-%m-%d %H:%M:%S}",
            moment.isoformat(timespec="seconds")[19:25],
            is_shifted=moment.utcoffset() != before.utcoffset(),
            notes=tuple(note for note in notes if before.timestamp() * 1000 < note.at_ms <= ms),
        )
        for ms, moment, before in zip(instants, moments[1:], moments, strict=False)
    )
