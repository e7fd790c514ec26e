"""Day rule: which days a calendar has, and what a rule makes of them."""

from datetime import date

from app.domain.calendars.calendar import Calendar, DayKind, UnknownDays
from app.domain.calendars.day_rule import EnteredRule, On, Otherwise, parse_rule
from tests.support.domain_calendars import CHINA, HOLIDAY, WORKDAY, days, rule
from tests.support.truth_table import truth_table

ALL_OFF = Calendar("off", frozenset(range(1, 8)))
#: 40 days off
LONG = Calendar("long", frozenset(), days(HOLIDAY, "2026-03-01..2026-04-09"))
KNOWN = date(2026, 12, 31)
BY_WEEKDAY, OFF, ON = (
    Calendar(
        kind, days=days(HOLIDAY, "2027-01-04") | days(WORKDAY, "2027-01-03"), valid_until=KNOWN, unknown=kind
    )
    for kind in UnknownDays
)


@truth_table(
    "calendar, day, kind",
    [
        (CHINA, "2026-09-30", WORKDAY),
        (CHINA, "2026-09-20", WORKDAY),  # a Sunday, made up
        (CHINA, "2026-10-10", WORKDAY),  # a Saturday, made up
        (CHINA, "2026-09-27", HOLIDAY),  # a Sunday
        (CHINA, "2026-10-01", HOLIDAY),
        (CHINA, "2026-10-08", WORKDAY),
        (Calendar("gulf", frozenset((5, 6))), "2026-10-02", HOLIDAY),  # a Friday
        (Calendar("gulf", frozenset((5, 6))), "2026-10-04", WORKDAY),  # a Sunday
        (Calendar("all", frozenset()), "2026-10-04", WORKDAY),
        (BY_WEEKDAY, "2026-12-31", WORKDAY),
        (OFF, "2026-12-31", WORKDAY),  # the last day that it knows
        (ON, "2026-12-27", HOLIDAY),
        (BY_WEEKDAY, "2027-01-01", WORKDAY),  # a Friday
        (BY_WEEKDAY, "2027-01-02", HOLIDAY),  # a Saturday
        (OFF, "2027-01-01", HOLIDAY),
        (ON, "2027-01-02", WORKDAY),
        # days that are listed are known, however late they are
        (ON, "2027-01-04", HOLIDAY),
        (OFF, "2027-01-03", WORKDAY),
    ],
)
def test_a_day_is_what_the_calendar_says(calendar: Calendar, day: str, kind: DayKind) -> None:
    assert calendar.kind_of(date.fromisoformat(day)) is kind


@truth_table(
    "day, is_known, is_makeup",
    [
        ("2026-12-31", True, False),
        ("2027-01-01", False, False),
        ("2026-09-20", True, True),
        ("2026-10-08", True, False),
        ("2026-10-04", True, False),
    ],
)
def test_pages_mark_unknown_days_and_days_made_up(day: str, is_known: bool, is_makeup: bool) -> None:
    at = date.fromisoformat(day)
    assert (CHINA.is_known(at), CHINA.is_makeup(at)) == (is_known, is_makeup)


@truth_table(
    "calendar, text, day, target",
    [
        (CHINA, "workdays", "2026-09-30", "2026-09-30"),
        (CHINA, "workdays", "2026-10-01", None),
        (CHINA, "workdays next", "2026-09-30", "2026-09-30"),
        (CHINA, "workdays next", "2026-10-01", "2026-10-08"),
        (CHINA, "workdays next", "2026-10-11", "2026-10-12"),
        (CHINA, "workdays next", "2026-09-19", "2026-09-20"),  # a Saturday to the Sunday after it
        (CHINA, "workdays previous", "2026-10-07", "2026-09-30"),
        (CHINA, "workdays previous", "2026-10-11", "2026-10-10"),  # a Sunday to the Saturday before it
        (CHINA, "workdays previous", "2026-09-19", "2026-09-18"),
        (CHINA, "holidays", "2026-10-03", "2026-10-03"),
        (CHINA, "holidays", "2026-10-10", None),
        (CHINA, "holidays next", "2026-09-30", "2026-10-01"),
        (CHINA, "holidays previous", "2026-09-30", "2026-09-27"),
        (CHINA, "holidays previous", "2026-09-20", "2026-09-19"),
        # 31 days at most
        (LONG, "workdays next", "2026-03-10", "2026-04-10"),
        (LONG, "workdays next", "2026-03-09", None),
        (LONG, "workdays previous", "2026-03-31", "2026-02-28"),
        (LONG, "workdays previous", "2026-04-01", None),
        (ALL_OFF, "workdays next", "2026-03-09", None),
        (OFF, "workdays next", "2026-12-31", "2026-12-31"),
        (OFF, "workdays next", "2027-01-01", "2027-01-03"),
        (OFF, "workdays next", "2027-01-05", None),
        (ON, "workdays next", "2027-01-04", "2027-01-05"),
        (CHINA, "workdays next", "9999-12-31", "9999-12-31"),  # a Friday, the last day that there is
        (CHINA, "holidays next", "9999-12-31", None),
    ],
)
def test_an_instant_moves_to_another_day(calendar: Calendar, text: str, day: str, target: str | None) -> None:
    found = rule(calendar, text).target(date.fromisoformat(day))
    assert (found and found.isoformat()) == target


@truth_table(
    "calendar, text",
    [
        (calendar, f"{on} {otherwise}")
        for calendar in (CHINA, LONG, BY_WEEKDAY, OFF)
        for on in On
        for otherwise in Otherwise
        if otherwise is not Otherwise.SKIP
    ],
)
def test_the_days_that_move_to_one_are_those_that_have_it_as_their_target(
    calendar: Calendar, text: str
) -> None:
    day_rule, year = (
        rule(calendar, text),
        [date.fromordinal(date(2026, 1, 1).toordinal() + n) for n in range(400)],
    )
    targets = {day: day_rule.target(day) for day in year}
    for day in year[40:-40]:
        if day_rule.allows(day):
            assert day_rule.sources(day) == [each for each in year if targets[each] == day and each != day]


@truth_table(
    "calendar, text, month, day",
    [
        (CHINA, "workdays 1", "2026-10", 8),
        (CHINA, "workdays 3", "2026-10", 10),  # the Saturday that is made up
        (CHINA, "workdays 18", "2026-10", 30),
        (CHINA, "workdays 19", "2026-10", None),
        (CHINA, "workdays -1", "2026-10", 30),
        (CHINA, "workdays -1", "2026-09", 30),
        (CHINA, "workdays 23", "2026-07", 31),
        (CHINA, "workdays 23", "2026-06", None),
        (CHINA, "workdays -1", "2026-08", 31),
        (CHINA, "workdays -1", "2026-05", 29),  # the 31st is a Sunday
        (CHINA, "workdays -1", "2028-02", 29),
        (CHINA, "workdays -1", "2026-02", 27),
        (CHINA, "workdays 1", "2027-01", 1),  # unknown, so by its weekday
        (CHINA, "holidays 1", "2026-10", 1),
        (CHINA, "holidays 3", "2026-10", 3),
        (CHINA, "holidays -1", "2026-10", 31),
        (CHINA, "holidays -1", "2026-09", 27),
        (LONG, "workdays 1", "2026-03", None),
        (LONG, "workdays 1", "2026-04", 10),
        (LONG, "holidays -1", "2026-04", 9),
        (ALL_OFF, "workdays 1", "2026-10", None),
        (ALL_OFF, "workdays -1", "2026-10", None),
    ],
)
def test_the_nth_day_of_a_month_is_the_only_one(
    calendar: Calendar, text: str, month: str, day: int | None
) -> None:
    first = date.fromisoformat(f"{month}-01")
    of_month = [at for n in range(31) if (at := date.fromordinal(first.toordinal() + n)).month == first.month]
    assert [at.day for at in of_month if rule(calendar, text).allows(at)] == ([] if day is None else [day])


@truth_table(
    "calendar, text, day, first",
    [
        (CHINA, "workdays", "2026-10-01", "2026-10-08"),
        (CHINA, "workdays", "2026-10-08", "2026-10-08"),
        (CHINA, "workdays 3", "2026-10-11", "2026-11-04"),
        (ALL_OFF, "workdays", "2026-10-11", None),
    ],
)
def test_a_search_for_a_day_ends(calendar: Calendar, text: str, day: str, first: str | None) -> None:
    found = rule(calendar, text).first_allowed(date.fromisoformat(day))
    assert (found and found.isoformat()) == first


@truth_table(
    "text, entered",
    [
        (None, None),
        ("", None),
        ('{"name": "cn"}', EnteredRule("cn")),
        (
            '{"name": "cn", "on": "holidays", "otherwise": "previous"}',
            EnteredRule("cn", On.HOLIDAYS, Otherwise.PREVIOUS),
        ),
        ('{"name": "cn", "nth": -1}', EnteredRule("cn", nth=-1)),
        ('{"name": "cn", "nth": 23}', EnteredRule("cn", nth=23)),
        ('{"name": "cn", "nth": null}', EnteredRule("cn")),
        # what another program has stored
        ("{", None),
        ("[]", None),
        ("{}", None),
        ('{"name": 1}', None),
        ('{"name": "cn", "on": "never"}', None),
        ('{"name": "cn", "otherwise": []}', None),
        ("[" * 100_000, None),
    ],
)
def test_a_stored_rule_is_read(text: str | None, entered: EnteredRule | None) -> None:
    assert parse_rule(text) == entered
