"""Fit of predecessors: which of their instants belong to a round, and when the next rounds are."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.clock import HOUR_MS, MINUTE_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.rounds.fitting import Fit, Predecessor, fit_of, next_rounds
from app.domain.rounds.kinds import RoundKind
from app.domain.schedules.schedule import Schedule
from tests.support.truth_table import truth_table

ZONE = "Europe/Berlin"


def at(text: str) -> Millis:
    return int(datetime.fromisoformat(f"2030-{text}").replace(tzinfo=ZoneInfo(ZONE)).timestamp()) * 1000


THREE = at("01-31 03:00")


def cron(conf: str, zone: str = ZONE, **values: bool) -> Predecessor:
    schedule = Schedule(ScheduleType.CRON, conf, zone)
    return Predecessor(schedule, **{"is_on": True, **values})


def every(minutes: int, next_ms: Millis = 0) -> Predecessor:
    return Predecessor(Schedule(ScheduleType.FIX_RATE, str(60 * minutes), ZONE), is_on=True, next_ms=next_ms)


def without(*, is_follower: bool = False) -> Predecessor:
    return Predecessor(Schedule(ScheduleType.NONE, "", ZONE), is_on=False, is_follower=is_follower)


DELAYED = Predecessor(Schedule(ScheduleType.FIX_DELAY, "60", ZONE), is_on=True)
BOUNDED = Predecessor(
    Schedule(ScheduleType.CRON, "0 0 3 * * ?", ZONE, not_after_ms=at("01-30 12:00")), is_on=True
)


@truth_table(
    "predecessor, kind, fit",
    [
        (cron("0 0 3 * * ?"), RoundKind.LOGICAL_TIME, Fit.FITS),
        (cron("0 5 3 * * ?"), RoundKind.LOGICAL_TIME, Fit.MISSING),
        (cron("0 0 2 * * ?", "UTC"), RoundKind.LOGICAL_TIME, Fit.FITS),
        (BOUNDED, RoundKind.LOGICAL_TIME, Fit.MISSING),
        (cron("0 5 3 * * ?"), RoundKind.DAY, Fit.FITS),
        (cron("0 0 0 * * ?"), RoundKind.DAY, Fit.FITS),
        (cron("59 59 23 * * ?"), RoundKind.DAY, Fit.FITS),
        # 23:30 of the day before in UTC is 00:30 here
        (cron("0 30 23 30 1 ?", "UTC"), RoundKind.DAY, Fit.FITS),
        (cron("0 30 23 31 1 ?", "UTC"), RoundKind.DAY, Fit.MISSING),
        (cron("0 0 3 ? * MON"), RoundKind.DAY, Fit.MISSING),
        (cron("0 0 3 ? * MON"), RoundKind.SINCE_LAST, Fit.FITS),
        (BOUNDED, RoundKind.SINCE_LAST, Fit.FITS),
        (cron("0 0 3 1 1 ? 2029"), RoundKind.SINCE_LAST, Fit.MISSING),
        (cron("0 0 3 * * ?", is_on=False), RoundKind.DAY, Fit.OFF),
        (every(30, THREE - HOUR_MS), RoundKind.LOGICAL_TIME, Fit.FITS),
        (every(30, THREE + 2 * HOUR_MS), RoundKind.LOGICAL_TIME, Fit.FITS),
        (every(30, THREE - MINUTE_MS), RoundKind.LOGICAL_TIME, Fit.MISSING),
        (every(30), RoundKind.DAY, Fit.UNKNOWN),
        (DELAYED, RoundKind.LOGICAL_TIME, Fit.UNKNOWN),
        (without(), RoundKind.DAY, Fit.SILENT),
        (without(is_follower=True), RoundKind.DAY, Fit.UNKNOWN),
    ],
)
def test_a_predecessor_fits_if_it_has_an_instant_in_the_round(
    predecessor: Predecessor, kind: RoundKind, fit: Fit
) -> None:
    assert fit_of(predecessor, kind, THREE, ZONE) is fit


@truth_table(
    "own, predecessors, kind, rounds",
    [
        (cron("0 0 4 * * ?"), [cron("0 0 3 * * ?")], RoundKind.DAY, ["31 04:00", "32 04:00", "33 04:00"]),
        (without(), [cron("0 0 1 * * ?")], RoundKind.LOGICAL_TIME, ["32 01:00", "33 01:00", "34 01:00"]),
        (
            without(),
            [cron("0 0 1 * * ?"), cron("0 5 1 * * ?"), cron("0 0 2 * * ?", is_on=False)],
            RoundKind.LOGICAL_TIME,
            ["32 01:00", "32 01:05", "33 01:00"],
        ),
        (
            without(),
            [cron("* * * * * ?"), cron("0 5 1 * * ?")],
            RoundKind.DAY,
            ["31 03:00", "32 00:00", "33 00:00"],
        ),
        (without(), [every(720, THREE)], RoundKind.LOGICAL_TIME, ["31 15:00", "32 03:00", "32 15:00"]),
        (without(), [cron("0 0 3 * * ?"), DELAYED], RoundKind.SINCE_LAST, []),
        (DELAYED, [cron("0 0 3 * * ?")], RoundKind.DAY, []),
        (without(), [without(), DELAYED], RoundKind.DAY, []),
    ],
)
def test_rounds_are_at_the_instants_of_the_job_else_of_its_predecessors(
    own: Predecessor, predecessors: list[Predecessor], kind: RoundKind, rounds: list[str]
) -> None:
    def shown(at_ms: Millis) -> str:
        moment = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(ZONE))
        return f"{moment.day + 31 * (moment.month - 1)} {moment:%H:%M}"

    assert [shown(at_ms) for at_ms in next_rounds(own, predecessors, kind, now_ms=THREE)] == rounds
