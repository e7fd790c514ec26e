"""What pages ask for hundreds of times: links, parts of the same words, texts. All of it as without the short cuts."""

from collections.abc import Callable

import pytest
from flask import Flask, url_for
from markupsafe import Markup

from app.console.page_parts import link


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
def test_a_link_is_what_url_for_makes(asked: Callable[..., object], endpoint: str, values: dict[str, object]) -> None:
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


def test_a_text_is_in_the_language_of_each_request_and_its_values_are_escaped(app: Flask, asked: Callable[..., object]) -> None:
    template = app.jinja_env.from_string(
        "{{ _('Success') }} {{ _('Welcome %(name)s', name='<i>') }} {{ ngettext('%(num)d run', '%(num)d runs', 2) }}"
    )
    made = [str(asked(template.render, language)) for language in ("en", "zh-CN", "zh-TW", "en")]
    assert made[0] == made[3] == "Success Welcome &lt;i&gt; 2 runs"
    assert len(set(made)) == 3
    assert all("&lt;i&gt;" in text for text in made)
