"""Times in callbacks: which of them show that a callback is of an earlier run."""

from app.domain.runs.callback_times import BEHIND_MS, is_of_earlier_run
from tests.support.factories import T0
from tests.support.truth_table import truth_table


@truth_table(
    "client, reported, is_earlier",
    [
        ("repeats the time of the run", T0, False),
        ("repeats the time of an earlier run", T0 - BEHIND_MS - 1_000, True),
        # looks like that of a clock that is behind, whose result must count
        ("time of the callback in a full second, clock behind", T0 - BEHIND_MS, False),
        ("repeats the time of a run of another day", T0 - 86_400_000, True),
        ("npm xxl-job: time of the callback", T0 + 1_234, False),
        ("npm xxl-job, in a full second", T0 + 2_000, False),
        ("npm xxl-job, clock behind", T0 - 3_877, False),
        ("Go, time of the callback in seconds", T0 // 1_000 + 1, False),
        ("Go, in seconds, clock behind", T0 // 1_000 - 3, False),
        ("repeats the time in seconds", T0 // 1_000, False),
        ("sends no time", 0, False),
        ("sends a negative one", -1_000, False),
    ],
)
def test_only_a_full_second_well_before_the_run_is_of_another(
    client: str, reported: int, is_earlier: bool
) -> None:
    assert is_of_earlier_run(reported, T0) is is_earlier, client


def test_milliseconds_of_the_trigger_time_do_not_count() -> None:
    assert not is_of_earlier_run(T0 - BEHIND_MS, T0 + 999)
