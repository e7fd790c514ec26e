"""Labels: intervals in words."""

from enum import StrEnum

import pytest

from app.console.ui.labels import LABELS_OF, as_sentence, interval_words, target_title


@pytest.mark.parametrize(
    ("kind", "conf", "words"),
    [
        ("FIX_RATE", "1", "Every second"),
        ("FIX_RATE", "30", "Every 30 seconds"),
        ("FIX_RATE", "60", "Every minute"),
        ("FIX_RATE", "900", "Every 15 minutes"),
        ("FIX_RATE", "3600", "Every hour"),
        ("FIX_RATE", "172800", "Every 2 days"),
        ("FIX_DELAY", "1", "1 second after each run"),
        ("FIX_DELAY", "60", "1 minute after each run"),
        ("FIX_DELAY", "7200", "2 hours after each run"),
        ("FIX_DELAY", "86400", "1 day after each run"),
        ("FIX_RATE", "soon", ""),
        ("FIX_RATE", None, ""),
        ("CRON", "0 0 * * * ?", ""),
    ],
)
def test_intervals_in_words(kind: str, conf: str | None, words: str) -> None:
    assert interval_words(kind, conf) == words


@pytest.mark.parametrize("kind", LABELS_OF, ids=lambda kind: kind.__name__)
def test_each_value_has_a_label(kind: type[StrEnum]) -> None:
    assert set(LABELS_OF[kind]) == set(kind)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("channel Slack", "channel Slack"),
        ("mail ops@example.com", "mail ops@example.com"),
        ("1 ntfy://…", "Apprise URL 1, ntfy://…"),
    ],
)
def test_alarm_targets_have_their_names(name: str, title: str) -> None:
    assert target_title(name) == title


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("the webhook answered with the status 500", "The webhook answered with the status 500"),
        ("ops@example.org: no such mailbox", "ops@example.org: no such mailbox"),
        ("https://hook.example answered", "https://hook.example answered"),
        ("连接被拒绝", "连接被拒绝"),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_but_for_addresses(text: str, sentence: str) -> None:
    assert as_sentence(text) == sentence
