"""The trace of a run: storable text, limited, in the reader's zone."""

from app.clock import Millis
from app.domain.runs.trigger_report import (
    ANSWER_MAX,
    TRACE_MAX,
    clean_text,
    due_in_trace,
    format_instant,
    join_lines,
    one_line,
    parse_instant,
)
from tests.support.truth_table import truth_table


@truth_table(
    "text, limit, clean",
    [
        ("done", 10, "done"),
        ("", 10, ""),
        ("a\x00b", 10, "a\N{REPLACEMENT CHARACTER}b"),
        ("half \ud83d of a pair", 50, "half ? of a pair"),
        ("ends in half \udfff", 50, "ends in half ?"),
        ("\U0001f600" * 5, 3, "\U0001f600" * 3),
        ("abcdef", 3, "abc"),
        ("行" * 20, 7, "行" * 7),
        ("\ud83d\ude00", 5, "??"),
    ],
)
def test_any_text_becomes_storable(text: str, limit: int, clean: str) -> None:
    assert clean_text(text, limit) == clean
    clean_text(text, limit).encode()


@truth_table(
    "millis, zone, text",
    [
        (0, "UTC", "1970-01-01 00:00:00.000 +0000"),
        (1_714_532_645_250, "Asia/Shanghai", "2024-05-01 11:04:05.250 +0800"),
        (1_714_532_645_007, "America/New_York", "2024-04-30 23:04:05.007 -0400"),
        (
            1_729_987_200_000,
            "Europe/Berlin",
            "2024-10-27 02:00:00.000 +0200",
        ),  # the first of two equal local times
        (1_729_990_800_000, "Europe/Berlin", "2024-10-27 02:00:00.000 +0100"),
        (-1, "UTC", "1969-12-31 23:59:59.999 +0000"),
    ],
)
def test_an_instant_in_local_time(millis: Millis, zone: str, text: str) -> None:
    assert format_instant(millis, zone) == text
    assert parse_instant(text) == millis


@truth_table(
    "trace, due_ms",
    [
        ("Trigger: MANUAL, due 2024-05-01 11:04:05.250 +0800\nSent to: x", 1_714_532_645_250),
        ("Trigger: CRON, due 2024-05-01 11:04:05.250 +0800, seen by node one", 1_714_532_645_250),
        ("Trigger: MANUAL, due yesterday", None),
        ("任务触发类型：手动触发<br>调度机器：10.0.0.7", None),
        (None, None),
    ],
)
def test_a_trace_names_the_instant_it_was_due(trace: str | None, due_ms: int | None) -> None:
    assert due_in_trace(trace) == due_ms


def test_lines_and_lists_of_lines_make_one_trace() -> None:
    assert (
        join_lines("first", None, (), "", ["second", "third"], (">>> trigger <<<",))
        == "first\nsecond\nthird\n>>> trigger <<<"
    )
    assert join_lines() == ""


def test_the_middle_of_a_long_trace_is_cut() -> None:
    trace = join_lines("begins", ["x" * 80] * 1_000, "ends")
    assert len(trace) <= TRACE_MAX
    assert trace.startswith("begins\n")
    assert "… (cut) …" in trace


@truth_table("filler", ["行", "\U0001f600"])
def test_a_long_trace_of_wide_characters_still_fits_the_column(filler: str) -> None:
    assert len(join_lines([filler * 100] * 1_000).encode()) <= 65_535


def test_a_trace_of_the_maximum_length_is_kept_whole() -> None:
    assert join_lines("x" * TRACE_MAX) == "x" * TRACE_MAX


@truth_table(
    "message, line",
    [
        ("busy", "busy"),
        ("a\nResult: accepted\r\n\u2028b\x0b c", "a Result: accepted b c"),
        ("x" * 9_000, "x" * ANSWER_MAX),
        ("\n" * 9_000, ""),
    ],
)
def test_an_executors_message_stays_within_one_line(message: str, line: str) -> None:
    assert one_line(message) == line
