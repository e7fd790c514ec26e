"""Helpers of the tests of domain cron, for all that need them."""

from hypothesis import strategies as st

from tests.domain.cron.brute import MONTHS, WEEKDAYS


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    """Return items of a field: a, a-b, a/s, a-b/s, *, */s."""
    value, step = st.integers(low, high).map(str), st.integers(1, high).map(str)
    span = st.builds("{}-{}".format, value, value)
    return st.one_of(
        value,
        value,
        span,
        st.just("*"),
        st.builds("{}/{}".format, st.one_of(value, span, st.just("*")), step),
    )


def listed(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(items, min_size=1, max_size=3).map(",".join)


name_range = st.builds("{}-{}".format, st.sampled_from(WEEKDAYS), st.sampled_from(WEEKDAYS))


month_field = st.one_of(
    st.just("*"), st.just("*"), listed(st.one_of(numbers(1, 12), st.sampled_from(MONTHS)))
)


day_field = st.one_of(
    st.just("*"),
    listed(numbers(1, 31)),
    st.sampled_from(["L", "LW", "L-1", "L-27", "L-3W"]),
    st.integers(1, 28).map("{}W".format),
    listed(
        st.one_of(numbers(1, 31), st.sampled_from(["L", "LW", "L-3"]), st.integers(1, 28).map("{}W".format))
    ),
)


weekday_field = st.one_of(
    st.just("*"),
    listed(st.one_of(numbers(1, 7), st.sampled_from(WEEKDAYS), name_range)),
    st.builds(
        "{}{}".format, st.sampled_from(["1", "7", "SUN", "FRI"]), st.sampled_from(["L", "#1", "#4", "#5"])
    ),
    st.just("L"),
)


day_fields = st.one_of(
    st.tuples(day_field, month_field, st.just("?")), st.tuples(st.just("?"), month_field, weekday_field)
)


quartz = st.builds(
    "{0} {1} {2} {3[0]} {3[1]} {3[2]}".format,
    st.one_of(st.sampled_from(["0", "0/20", "59"]), listed(numbers(0, 59))),
    listed(numbers(0, 59)),
    listed(numbers(0, 23)),
    day_fields,
)


unix = st.builds(
    "{} {} {} * {}".format,
    st.sampled_from(["0", "30", "*/15", "10,40", "40-5/10"]),
    st.sampled_from(["*", "1", "2", "0-4", "1,2,3", "0", "3-3", "20-2/3"]),
    st.sampled_from(["*", "*", "1-9", "28-8/3"]),
    st.sampled_from(["*", "*", "SUN", "1-5", "0,6", "6-6", "5-1/2"]),
)
