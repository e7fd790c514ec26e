"""Troubles: their order by severity, what explains others, and the tone of the whole."""

import pytest

from app.clock import MINUTE_MS
from app.domain.report.troubles import LATE_AFTER_MS, Facts, Finding, Tone, Trouble, tone_of, troubles_of

NOW = 1_000 * MINUTE_MS


def words(facts: Facts) -> str:
    return " ".join(f"{finding.trouble}:{finding.number}" for finding in troubles_of(facts, now_ms=NOW))


@pytest.mark.parametrize(
    ("facts", "expected", "tone"),
    [
        (Facts(), "", None),
        (Facts(online=2), "", None),
        (Facts(online=2, failing=9), "failing:9", Tone.DANGER),
        (Facts(is_scheduling=False), "no_scheduler:1", Tone.DANGER),
        (Facts(is_scheduling=False, is_stuck=True), "stuck:1", Tone.DANGER),
        (Facts(is_scheduling=False, scheduler_clocks=1), "clock:1", Tone.DANGER),
        (Facts(is_scheduling=False, console_clocks=1), "no_scheduler:1 console_clock:1", Tone.DANGER),
        (Facts(console_clocks=2), "console_clock:2", Tone.WARNING),
        (Facts(offline=3), "no_executor:1", Tone.DANGER),
        (Facts(offline=1, online=2), "offline:1", Tone.WARNING),
        (Facts(offline=1, drained_count=1), "offline:1 drained:1", Tone.WARNING),
        (Facts(drained_count=2), "drained:2", Tone.WARNING),
        (Facts(late=3, oldest_late_ms=NOW - LATE_AFTER_MS), "late:3", Tone.WARNING),
        (Facts(late=3, oldest_late_ms=NOW - LATE_AFTER_MS + 1), "", None),
        (Facts(unresolved_count=1), "unresolved:1", Tone.WARNING),
        (Facts(broken_channels=1), "channel:1", Tone.WARNING),
        (Facts(unmailed_count=4, weak_passwords=2), "unmailed:4 password:2", Tone.WARNING),
        (Facts(drift_count=2), "drift:2", Tone.NOTE),
        (
            Facts(drift_count=2, broken_channels=1, failing=9, offline=1, online=5, unresolved_count=1),
            "failing:9 offline:1 unresolved:1 channel:1 drift:2",
            Tone.DANGER,
        ),
    ],
)
def test_what_is_wrong_is_said_the_most_severe_first(facts: Facts, expected: str, tone: Tone | None) -> None:
    assert words(facts) == expected
    assert tone_of(troubles_of(facts, now_ms=NOW)) is tone


def test_no_trouble_is_less_severe_than_one_after_it() -> None:
    tones = [Finding(trouble).tone for trouble in Trouble if trouble is not Trouble.CONSOLE_CLOCK]
    assert tones == sorted(tones, key=list(Tone).index)
