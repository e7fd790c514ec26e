"""Labels: intervals in words."""

import pytest

from app.console.ui.labels import interval_words, target_title


@pytest.mark.parametrize(
    ("kind", "conf", "words"),
    [
        ("FIX_RATE", "1", "every 1 second"),
        ("FIX_RATE", "30", "every 30 seconds"),
        ("FIX_DELAY", "1", "1 second after each run"),
        ("FIX_DELAY", "60", "60 seconds after each run"),
        ("FIX_RATE", "soon", "every soon seconds"),
        ("CRON", "0 0 * * * ?", ""),
    ],
)
def test_intervals_in_words(kind: str, conf: str, words: str) -> None:
    assert interval_words(kind, conf) == words


@pytest.mark.parametrize("name", ["channel Slack", "mail ops@example.com", "1 ntfy://…"])
def test_alarm_targets_keep_their_names(name: str) -> None:
    assert target_title(name) == name
