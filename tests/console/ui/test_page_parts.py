"""What pages ask for hundreds of times: links, parts of the same words, texts. All of it as without the short cuts."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from flask import Flask, url_for
from flask_babel import format_timedelta
from markupsafe import Markup

from app.clock import now_ms
from app.console.ui.filters import instant, relative
from app.console.ui.page_parts import filled, link

#: what a page repeats is no matter of the database
pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def asked(app: Flask) -> Callable[..., object]:
    """Runs something as a view does, in a reader's language."""

    def ask(work: Callable[[], object], language: str = "en") -> object:
        with app.test_request_context(headers={"Accept-Language": language}):
            return work()

    return ask


@pytest.mark.parametrize(
    ("endpoint", "values"),
    [
        ("jobs.show", {"job_id": 1}),
        ("job_actions.run", {"job_id": 12, "log": 9_223_372_036_854_775_807}),
        ("logs.index", {"jobId": 7}),
        ("logs.index", {"jobId": 7, "range": "1 % 2&<"}),
        ("jobs.add", {"jobGroup": None}),
        ("jobs.index", {}),
        ("jobs.index", {"page": True}),
    ],
)
def test_a_link_is_what_url_for_makes(
    asked: Callable[..., object], endpoint: str, values: dict[str, object]
) -> None:
    def both() -> list[tuple[str, str]]:
        return [(link(endpoint, **values), url_for(endpoint, **values)) for _time in range(2)]  # type: ignore[arg-type]

    assert all(made == wanted for made, wanted in asked(both))  # type: ignore[attr-defined]


def test_each_link_of_a_page_holds_its_own_id(asked: Callable[..., object]) -> None:
    made = asked(lambda: [link("jobs.show", job_id=job_id) for job_id in (1, 2, 2_000_000_011)])
    assert made == [f"/jobinfo/{job_id}" for job_id in (1, 2, 2_000_000_011)]


def test_a_kept_part_tells_marked_text_from_text_of_users(app: Flask, asked: Callable[..., object]) -> None:
    source = "{% from 'macros/badge.html' import state %}{{ state('info', text, 'circle') }}"

    def page(text: str) -> str:
        return str(asked(lambda: app.jinja_env.from_string(source).render(text=text)))

    for _time in range(2):
        assert "<b>bold</b>" in page(Markup("<b>bold</b>"))
        assert "&lt;b&gt;bold&lt;/b&gt;" in page("<b>bold</b>")


def test_a_text_is_in_the_language_of_each_request_and_its_values_are_escaped(
    app: Flask, asked: Callable[..., object]
) -> None:
    template = app.jinja_env.from_string(
        "{{ _('Success') }} {{ _('Welcome %(name)s', name='<i>') }} {{ ngettext('%(num)d run', '%(num)d runs', 2) }}"
    )
    made = [str(asked(template.render, language)) for language in ("en", "zh-CN", "zh-TW", "en")]
    assert made[0] == made[3] == "Success Welcome &lt;i&gt; 2 runs"
    assert len(set(made)) == 3
    assert all("&lt;i&gt;" in text for text in made)


def test_a_filled_part_is_made_once_for_the_same_flags_and_holds_each_id(
    asked: Callable[..., object],
) -> None:
    made = []

    def macro(number: int, is_on: bool, count: int) -> str:
        made.append((is_on, count))
        return f'<a href="/{number}?x=1%d">{number} {is_on} {count}</a>'

    part = filled(macro)
    wanted = [(1, True, 0), (22, True, 0), (3, False, 0), (4, True, 7), (2_000_000_011, True, 0)]
    parts = asked(lambda: [part(*each) for each in wanted])
    assert parts == [
        f'<a href="/{number}?x=1%d">{number} {is_on} {count}</a>' for number, is_on, count in wanted
    ]
    assert all(isinstance(each, Markup) for each in parts)  # type: ignore[attr-defined]
    assert made == [(True, 0), (False, 0), (True, 7)]
    asked(lambda: part(1, True, 0))
    assert len(made) == 4  # another request is another reader


def test_a_filled_part_holds_nothing_but_numbers(asked: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="<b>"):
        asked(lambda: filled(str)("<b>"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seconds", [-40 * 86_400, -86_400, -5_000, -90, -3, -1, 0, 1, 3, 89, 5_399, 5_400, 130_000, 40 * 86_400]
)
def test_a_distance_is_said_in_the_language_of_each_request(
    asked: Callable[..., object], seconds: int
) -> None:
    at_ms = now_ms() + seconds * 1000 + 500

    def both() -> bool:
        spoken = str(
            format_timedelta(timedelta(milliseconds=at_ms - now_ms()), add_direction=True, threshold=1.5)
        )
        return relative(at_ms) == spoken

    is_spoken = 2 <= abs(seconds) <= 30 * 86_400
    for language in ("en", "zh-CN", "zh-TW", "en"):
        assert asked(both, language) is is_spoken


def test_an_instant_that_is_none_shows_the_word_for_it_as_text(asked: Callable[..., object]) -> None:
    assert asked(lambda: instant(None, absent="<b>")) == '<span class="muted">&lt;b&gt;</span>'
    assert asked(lambda: instant(0)) == '<span class="muted">–</span>'
