"""Cached page parts: macros and texts, with the same output as without a cache."""

import re
from collections.abc import Callable

import pytest
from flask import Flask
from markupsafe import Markup

from app.clock import now_ms
from app.console.ui.filters import instant, relative
from app.console.ui.page_parts import fill_macro

#: independent of the database
pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def in_request(app: Flask) -> Callable[..., object]:
    """Return a function that calls another as a view, in a reader's language."""

    def ask(work: Callable[[], object], language: str = "en") -> object:
        with app.test_request_context(headers={"Accept-Language": language}):
            return work()

    return ask


def test_a_cached_part_distinguishes_markup_from_text(app: Flask, in_request: Callable[..., object]) -> None:
    source = "{% from 'macros/badge.html' import state %}{{ state('info', text, 'circle') }}"

    def page(text: str) -> str:
        return str(in_request(lambda: app.jinja_env.from_string(source).render(text=text)))

    for _time in range(2):
        assert "<b>bold</b>" in page(Markup("<b>bold</b>"))
        assert "&lt;b&gt;bold&lt;/b&gt;" in page("<b>bold</b>")


def test_a_text_is_in_the_language_of_each_request_and_its_values_are_escaped(
    app: Flask, in_request: Callable[..., object]
) -> None:
    template = app.jinja_env.from_string(
        "{{ _('Succeeded') }} {{ _('Welcome %(name)s', name='<i>') }}"
        " {{ ngettext('%(num)d run', '%(num)d runs', 2) }}"
    )
    made = [str(in_request(template.render, language)) for language in ("en", "zh-CN", "zh-TW", "en")]
    assert made[0] == made[3] == "Succeeded Welcome &lt;i&gt; 2 runs"
    assert len(set(made)) == 3
    assert all("&lt;i&gt;" in text for text in made)


def test_a_filled_part_is_made_once_per_flags_and_has_each_id(
    in_request: Callable[..., object],
) -> None:
    made = []

    def macro(number: int, is_on: bool, count: int) -> str:
        made.append((is_on, count))
        return f'<a href="/{number}?x=1%d">{number} {is_on} {count}</a>'

    part = fill_macro(macro)
    expected = [(1, True, 0), (22, True, 0), (3, False, 0), (4, True, 7), (2_000_000_011, True, 0)]
    parts = in_request(lambda: [part(*arguments) for arguments in expected])
    assert parts == [
        f'<a href="/{number}?x=1%d">{number} {is_on} {count}</a>' for number, is_on, count in expected
    ]
    assert all(isinstance(arguments, Markup) for arguments in parts)  # type: ignore[attr-defined]
    assert made == [(True, 0), (False, 0), (True, 7)]
    in_request(lambda: part(1, True, 0))
    assert len(made) == 4  # another request may be another reader


def test_a_filled_part_accepts_only_numbers(in_request: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="<b>"):
        in_request(lambda: fill_macro(str)("<b>"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5_000, ("83 minutes ago", "83 分钟前", "83 分鐘前")),
        (-3, ("3 seconds ago", "3 秒前", "3 秒前")),
        (90, ("in 2 minutes", "2 分钟后", "2 分鐘後")),
        (7_200, ("in 2 hours", "2 小时后", "2 小時後")),
        (10 * 86_400, ("in 10 days", "10 天后", "10 天後")),
    ],
)
def test_a_relative_time_is_in_the_language_of_each_request(
    in_request: Callable[..., object], seconds: int, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_ms = now_ms()
    monkeypatch.setattr("app.console.ui.filters.now_ms", lambda: at_ms)
    for language, text in zip(("en", "zh-CN", "zh-TW", "en"), (*words, words[0]), strict=True):
        assert in_request(lambda: relative(at_ms + seconds * 1000), language) == text


@pytest.mark.parametrize(
    ("seconds", "pattern"),
    [
        (24 * 3600, r"tomorrow \d\d:\d\d"),
        (-24 * 3600, r"yesterday \d\d:\d\d"),
        (40 * 86_400, r"\d{4}-\d\d-\d\d"),
    ],
)
def test_a_time_of_another_day_has_its_time_of_day_unless_it_is_far(
    in_request: Callable[..., object], seconds: int, pattern: str
) -> None:
    assert re.fullmatch(pattern, str(in_request(lambda: relative(now_ms() + seconds * 1000))))


@pytest.mark.parametrize(("offset_ms", "words"), [(-1_000, "just now"), (1_500, "now")])
def test_what_comes_up_now_is_not_past(in_request: Callable[..., object], offset_ms: int, words: str) -> None:
    assert in_request(lambda: relative(now_ms() + offset_ms)) == words


def test_a_next_time_that_is_not_an_instant_shows_its_label(in_request: Callable[..., object]) -> None:
    assert in_request(lambda: instant(None, absent="<b>")) == '<span class="muted">&lt;b&gt;</span>'
    assert in_request(lambda: instant(0)) == '<span class="muted">–</span>'
