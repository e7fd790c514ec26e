"""Effective instants, found one after the other and counted, compared with a listing of all of them."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.calendars.blackouts import Afterwards, Blackout
from app.domain.calendars.calendar import Calendar, DayKind, UnknownDays
from app.domain.calendars.day_rule import DayRule, EnteredRule, On, Otherwise, day_rule
from app.domain.calendars.effective import JobRules, StartKind
from app.domain.calendars.rule_book import CalendarVersion, Membership, RuleBook
from app.domain.completeness.expected_instants import (
    Interval,
    count_excluded,
    count_expected,
    expected_instants,
    find_exclusions,
)
from app.domain.completeness.rule_history import with_rules
from app.domain.completeness.rule_instants import BLACKOUT, CALENDAR
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import RESTING, Schedule, next_after_ms
from tests.domain.calendars.brute import Listing
from tests.support.domain_schedules import BERLIN, LORD_HOWE, NEW_YORK, SHANGHAI, ms

SAO_PAULO = "America/Sao_Paulo"
CRON, RATE = ScheduleType.CRON, ScheduleType.FIX_RATE
#: around clocks that go forward, and the end of a year
MOMENTS = {
    "UTC": "2027-12-30 12:00",
    SHANGHAI: "2026-10-06 12:00",
    BERLIN: "2026-03-28 12:00",
    NEW_YORK: "2026-03-07 12:00",
    LORD_HOWE: "2026-10-03 12:00",
    SAO_PAULO: "2017-10-14 12:00",
}
#: around clocks that go back; in that hour the search of six fields depends on where it begins
BACK = MOMENTS | {
    BERLIN: "2026-10-24 12:00",
    NEW_YORK: "2026-10-31 12:00",
    LORD_HOWE: "2026-04-04 12:00",
    SAO_PAULO: "2018-02-17 12:00",
}


class Scale(NamedTuple):
    """What goes together so that all instants can be listed."""

    confs: Sequence[str]
    #: length of the time that is compared, and of that before and after it which is listed, too
    core_ms: Millis
    margin_ms: Millis
    #: crons and longest duration in seconds of blackouts that recur, of which two leave a gap
    recurring: Sequence[tuple[str, int]]
    longest_ms: Millis
    #: days of a calendar that differ from their weekday: how many times, and how many together
    changes: tuple[int, int] = (2, 3)
    moves: bool = True


NIGHTLY = (
    ("0 0 22 * * ?", 18_000),
    ("30 1 * * *", 18_000),
    ("0 0 2 ? * SUN", 18_000),
    ("0 15 * * * ?", 1_500),
)
DAYS = Scale(
    [
        "0 0 9 * * ?",
        "30 2 * * *",
        "0 30 2 * * ?",
        "0 0 0,12 1,15,L * ?",
        "15 0 * * 1-5",
        "0 30 0 31 * ?",
        "0 0 9 1 * ?",
    ],
    40 * DAY_MS,
    75 * DAY_MS,
    NIGHTLY,
    6 * DAY_MS,
    (5, 12),
)
HOURS = Scale(
    ["0 30 * * * ?", "0 */2 * * *", "0 0/30 1-4 * * ?", "*/20 2 * * *"],
    3 * DAY_MS,
    14 * DAY_MS,
    NIGHTLY,
    DAY_MS,
)
MINUTES = Scale(["0 0/10 * * * ?", "*/10 * * * *"], DAY_MS, 14 * DAY_MS, NIGHTLY, DAY_MS)
SECONDS = Scale(
    ["* * * * * ?", "0/7 * * * * ?"],
    6 * MINUTE_MS,
    100 * MINUTE_MS,
    [("0 0/10 * * * ?", 200), ("30 * * * * ?", 20)],
    20 * MINUTE_MS,
    moves=False,
)
RATES = Scale(["600", "3601", "86400", "100000"], 5 * DAY_MS, 14 * DAY_MS, NIGHTLY, DAY_MS, moves=False)


class Case(NamedTuple):
    """A schedule with rules, the time that is compared, and instants within it."""

    schedule: Schedule
    rule: DayRule | None
    blackouts: Sequence[Blackout]
    core: Interval
    margin_ms: Millis
    points: Sequence[Millis]
    anchor_ms: Millis = 0

    def listing(self) -> Listing:
        """List all instants."""
        from_ms, until_ms = self.core.from_ms - self.margin_ms, self.core.until_ms + self.margin_ms
        return Listing(self.schedule, self.rule, self.blackouts, from_ms, until_ms, self.anchor_ms)


def days_of(day: date, scale: Scale) -> st.SearchStrategy[dict[date, DayKind]]:
    """Return days around one that are something else than their weekday says."""
    reach, (most, longest) = int((scale.core_ms + scale.margin_ms) // DAY_MS) + 1, scale.changes
    changes = st.tuples(st.integers(-reach, reach), st.integers(1, longest), st.sampled_from(DayKind))

    def days(ranges: list[tuple[int, int, DayKind]]) -> dict[date, DayKind]:
        return {day + timedelta(first + n): kind for first, count, kind in ranges for n in range(count)}

    return st.lists(changes, max_size=most).map(days)


@st.composite
def calendars(draw: Any, day: date, scale: Scale) -> Calendar:
    weekends = [frozenset((6, 7)), frozenset((6, 7)), frozenset((7,))]
    known = draw(st.one_of(st.none(), st.integers(-10, 10)))
    return Calendar(
        "cal",
        draw(st.sampled_from([*weekends, frozenset[int]()] if scale is DAYS else weekends)),
        draw(days_of(day, scale)),
        valid_until=None if known is None else day + timedelta(known),
        unknown=draw(st.sampled_from(UnknownDays)) if scale is DAYS else UnknownDays.WEEKDAY,
    )


@st.composite
def entered_rules(draw: Any, scale: Scale) -> EnteredRule:
    otherwise = draw(st.sampled_from(Otherwise)) if scale.moves else Otherwise.SKIP
    nth = draw(st.sampled_from([None, None, 1, 3, -1])) if otherwise is Otherwise.SKIP else None
    # Several days off follow each other, but not as many workdays: these do not move far.
    may_be_off = scale is DAYS or otherwise is Otherwise.SKIP
    return EnteredRule("cal", draw(st.sampled_from(On)) if may_be_off else On.WORKDAYS, otherwise, nth)


@st.composite
def blackouts(draw: Any, core: Interval, scale: Scale, zone: str) -> Blackout:
    afterwards = draw(st.sampled_from(Afterwards))
    from_ms = draw(st.integers(core.from_ms - scale.longest_ms, core.until_ms) | st.just(core.from_ms))
    unit_ms = draw(st.sampled_from([1, SECOND_MS, scale.longest_ms // 24]))
    from_ms -= from_ms % unit_ms
    until_ms = from_ms + unit_ms * draw(st.integers(1, scale.longest_ms // unit_ms))
    if not draw(st.booleans()):
        is_endless = draw(st.integers(0, 4)) == 0
        return Blackout(1, from_ms, None if is_endless else until_ms, afterwards=afterwards)
    cron, longest_s = draw(st.sampled_from(scale.recurring))
    from_ms = draw(st.sampled_from([0, from_ms]))
    ends = draw(st.sampled_from([None, None, until_ms]))
    duration_s = draw(st.integers(longest_s // 10, longest_s))
    return Blackout(2, from_ms, ends, cron, duration_s, zone, afterwards=afterwards)


@st.composite
def cases(draw: Any, scale: Scale) -> Case:
    zone = "UTC" if scale is SECONDS else draw(st.sampled_from(sorted(MOMENTS)))
    conf = draw(st.sampled_from(scale.confs))
    moments = BACK if len(conf.split()) == 5 and draw(st.booleans()) else MOMENTS
    begin_ms = ms(moments[zone], zone) + draw(st.integers(-12, 12)) * HOUR_MS - scale.core_ms // 2
    core = Interval(begin_ms, begin_ms + scale.core_ms)
    day = date.fromisoformat(moments[zone][:10])
    has_rule = draw(st.integers(0, 3)) > 0
    rule = day_rule(draw(calendars(day, scale)), draw(entered_rules(scale))) if has_rule else None
    closed = draw(st.lists(blackouts(core, scale, zone), max_size=3))
    anchor_ms = core.from_ms - scale.margin_ms + draw(st.integers(0, scale.core_ms + scale.margin_ms))
    is_rate, inside = scale is RATES, st.integers(core.from_ms, core.until_ms - 1)
    window = draw(
        st.sampled_from(
            [(0, 0)] * 3 + [(core.from_ms + scale.core_ms // 5, core.until_ms - scale.core_ms // 5)]
        )
    )
    schedule = Schedule(RATE if is_rate else CRON, conf, zone, *window)
    points = sorted(draw(st.lists(inside, min_size=2, max_size=4)))
    return Case(schedule, rule, closed, core, scale.margin_ms, points, anchor_ms if is_rate else 0)


def check_next(case: Case, listing: Listing) -> None:
    """Compare the search from any instant with the listing."""
    rules = JobRules(case.rule, tuple(case.blackouts), case.anchor_ms)
    schedule = replace(case.schedule, rules=rules)
    effective = {
        due_ms: raw_ms for due_ms, raw_ms in listing.effective.items() if due_ms <= case.core.until_ms
    }
    assert len(set(effective.values())) == len(effective)
    for at_ms in {*case.points, *effective, *(due_ms - 1 for due_ms in effective), *listing.covered[:50:5]}:
        if at_ms < case.core.from_ms or at_ms > case.core.until_ms:
            continue
        found, following = (
            next_after_ms(schedule, at_ms),
            min((due for due in effective if due > at_ms), default=None),
        )
        if following is None:
            assert found is None or found > case.core.until_ms
            assert (
                not any(rest_ms > at_ms for rest_ms in listing.rests if rest_ms <= case.core.until_ms)
                or found == RESTING
            )
            continue
        assert found == following
        start = rules.start_at(schedule, found)
        assert (start.due_ms, start.logical_ms) == (found, effective[found])
        assert (start.kind is StartKind.RUN_ONCE) == (found in listing.at_ends)


def within(instants: Sequence[Millis], span: Span, interval: Interval) -> list[Millis]:
    until_ms = interval.until_ms if span.until_ms is None else min(interval.until_ms, span.until_ms + 1)
    return [at_ms for at_ms in instants if max(span.from_ms, interval.from_ms - 1) < at_ms < until_ms]


def check_counts(case: Case, parts: Sequence[tuple[Span, Listing]]) -> None:
    """Compare what is expected of a history, and what is not, with the listings of its spans."""
    spans, points = [span for span, _ in parts], [case.core.from_ms, *case.points, case.core.until_ms]
    first_ms, last_ms = case.schedule.not_before_ms, case.schedule.not_after_ms or case.core.until_ms
    totals, whole = Counter[str](), Interval(points[0], points[-1])
    for number, interval in enumerate([whole, *map(Interval, points, points[1:])]):
        run, off, covered = list[Millis](), list[Millis](), list[Millis]()
        for span, listing in parts:
            run += within([*listing.effective], span, interval)
            off += [at for at in within(listing.off, span, interval) if first_ms <= at <= last_ms]
            covered += within(listing.covered, span, interval)
        assert list(expected_instants(spans, interval)) == run
        assert count_expected(spans, interval) == len(run)
        left_out = [
            (part.reason, at_ms) for part in find_exclusions(spans, interval) for at_ms in part.instants
        ]
        assert sorted(left_out) == sorted(
            [*((BLACKOUT, at) for at in covered), *((CALENDAR, at) for at in off)]
        )
        counts = count_excluded(spans, interval)
        assert counts == Counter(reason for reason, _ in left_out)
        if number:
            totals.update(counts + Counter(expected=len(run)))
    assert totals == count_excluded(spans, whole) + Counter(expected=count_expected(spans, whole))


def check(case: Case) -> None:
    listing = case.listing()
    raw = list(listing.raw())
    if not case.schedule.not_before_ms:
        parts = [*listing.effective.values(), *listing.off]
        assert len(parts) + len(listing.covered) == len(raw)
    check_next(case, listing)
    rules = JobRules(case.rule, tuple(case.blackouts), case.anchor_ms)
    span = Span(1, 1, True, 0, None, replace(case.schedule, rules=rules), case.anchor_ms)
    check_counts(case, [(span, listing)])


@settings(max_examples=60)
@given(cases(DAYS))
def test_a_cron_of_days(case: Case) -> None:
    check(case)


@settings(max_examples=40)
@given(cases(HOURS))
def test_a_cron_of_hours(case: Case) -> None:
    check(case)


@settings(max_examples=10)
@given(cases(MINUTES))
def test_a_cron_of_minutes(case: Case) -> None:
    check(case)


@settings(max_examples=12)
@given(cases(SECONDS))
def test_a_cron_of_seconds(case: Case) -> None:
    check(case)


@settings(max_examples=20)
@given(cases(RATES))
def test_a_fixed_rate(case: Case) -> None:
    check(case)


@st.composite
def histories(draw: Any) -> tuple[Case, list[CalendarVersion], list[Membership]]:
    """Return a case, versions of its calendar, and when the job had the tag of its blackouts."""
    case = draw(cases(DAYS).filter(lambda each: each.rule is not None))
    day, instants = (
        date.fromisoformat(MOMENTS[case.schedule.time_zone][:10]),
        st.integers(case.core.from_ms, case.core.until_ms),
    )
    begins = sorted(draw(st.lists(instants, min_size=1, max_size=3)))
    versions = [CalendarVersion(from_ms, draw(calendars(day, DAYS))) for from_ms in begins]
    had, tag = list[Membership](), draw(st.lists(instants, max_size=3))
    for from_ms, until_ms in zip(sorted(tag), [*sorted(tag)[1:], None], strict=False):
        had.append(Membership(draw(st.sampled_from([1, 1, 2])), from_ms, until_ms))
    return case, versions, had


def parts_of(blackout: Blackout, had: Sequence[Membership]) -> list[Blackout]:
    """Return a blackout of a tag in the times in which job 1 had the tag."""
    parts = []
    for member in had:
        ends = [end for end in (blackout.until_ms, member.until_ms) if end is not None]
        from_ms = max(blackout.from_ms, member.from_ms)
        if member.job_id == 1 and (not ends or from_ms < min(ends)):
            parts.append(blackout._replace(from_ms=from_ms, until_ms=min(ends, default=None)))
    return parts


@settings(max_examples=25)
@given(histories())
def test_a_history_follows_the_rules_that_held(
    history: tuple[Case, list[CalendarVersion], list[Membership]],
) -> None:
    case, versions, had = history
    assert case.rule is not None
    entered = case.rule.rule
    tagged = [each._replace(id=number, tag="t" * (number % 2)) for number, each in enumerate(case.blackouts)]
    closed = [part for each in tagged for part in (parts_of(each, had) if each.tag else [each])]
    book = RuleBook(calendars={"cal": versions}, blackouts=tagged, members={each.id: had for each in tagged})
    schedule = replace(case.schedule, calendar=json.dumps(entered._asdict()))
    spans = with_rules(book, [Span(1, 1, True, 0, None, schedule)])
    begins = [0, *(version.from_ms for version in versions)]
    ends = [*begins[1:], None]
    calendar_of = {version.from_ms: version.calendar for version in versions}
    listings = []
    for from_ms, until_ms in zip(begins, ends, strict=True):
        rule = day_rule(calendar_of[from_ms], entered) if from_ms else None
        if from_ms != until_ms:
            listings.append(case._replace(rule=rule, blackouts=closed).listing())
    check_counts(case, list(zip(spans, listings, strict=True)))
