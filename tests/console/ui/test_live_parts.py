"""Live parts: a refresh carries the parts that changed, and nothing else."""

import re

import pytest
from flask import Flask, g, render_template_string
from werkzeug.test import TestResponse

from app.console.ui import live_parts
from app.console.ui.live_parts import HEADER, live_part
from tests.support.console import Console, add_group, add_job

HASH = re.compile(r'data-hash="([\w-]{6})"')
ROWS = """{% call live_part('box', class='grid', data_n=7, hidden=none) %}<b>{{ title }}</b>
{% call live_part('rows', tag='ul') %}{% for id, text in rows %}{% call live_part('run-%d' % id, tag='li') -%}
{{ text }}{{ instant(at_ms) }}<input name="csrf_token" value="{{ token }}">{% endcall %}{% endfor %}
{%- endcall %}{% endcall %}"""
SHOWN = {"title": "Runs", "rows": [(1, "a"), (2, "b")], "at_ms": 1_000, "token": "01"}


class Page:
    """A template shown to a browser, which then refreshes it."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.held = ""

    def shown(self, **values: object) -> str:
        with self.app.test_request_context("/"):
            text = render_template_string(ROWS, **{**SHOWN, **values})
        self.held = "".join(HASH.findall(text))
        return text

    def refreshed(self, **values: object) -> dict[str, str] | None:
        with self.app.test_request_context("/", headers={HEADER: self.held}):
            response = self.app.response_class(render_template_string(ROWS, **{**SHOWN, **values}))
            answer = live_parts._answer(response)
        if answer.status_code == 204:
            assert answer.data == b""
            return None
        parts: dict[str, str] = answer.get_json()["parts"]
        return parts


@pytest.fixture
def page(app: Flask) -> Page:
    return Page(app)


def test_a_page_has_its_parts_in_place(page: Page) -> None:
    text = page.shown()
    assert re.search(r'<div class="grid" data-n="7" data-part="box" data-hash="[\w-]{6}"><b>Runs</b>', text)
    assert re.search(
        r'<ul data-part="rows" [^>]*><li data-part="run-1" [^>]*>a<time.*<li data-part="run-2"', text
    )
    assert "\x02" not in text


@pytest.mark.parametrize(
    "change",
    [{}, {"token": "02"}],
    ids=["nothing", "the token"],
)
def test_an_unchanged_page_answers_with_nothing(page: Page, change: dict[str, object]) -> None:
    page.shown()
    assert page.refreshed(**change) is None


def test_the_words_of_a_relative_time_are_no_change(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    page.shown(at_ms=(at_ms := live_parts.now_ms() // 1000 * 1000))
    monkeypatch.setattr("app.console.ui.filters.now_ms", lambda: at_ms + 90_000)
    assert page.refreshed(at_ms=at_ms) is None
    assert page.refreshed(at_ms=at_ms + 1_000) is not None


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"title": "Other"}, {"box"}),
        ({"rows": [(1, "a"), (2, "changed")]}, {"run-2"}),
        ({"rows": [(2, "b"), (1, "a")]}, {"rows"}),
        ({"rows": [(3, "c"), (1, "a")]}, {"rows", "run-3"}),
        ({"rows": [(2, "b")]}, {"rows"}),
    ],
    ids=["outer part", "row", "order", "new and gone row", "gone row"],
)
def test_a_refresh_has_the_changed_parts(page: Page, change: dict[str, object], parts: set[str]) -> None:
    page.shown()
    answer = page.refreshed(**change)
    assert answer is not None
    assert set(answer) == parts
    if "rows" in answer:
        slots = re.findall(r'<template data-slot="run-(\d)"></template>', answer["rows"])
        assert slots == [str(row_id) for row_id, _text in change["rows"]]  # type: ignore[attr-defined]


def test_stored_text_cannot_pose_as_a_part(page: Page) -> None:
    text = page.shown(rows=[(1, "\x02run-2\x03"), (2, '<b data-part="run-1">')])
    assert text.count('data-part="run-1"') == 1
    assert text.count('data-part="run-2"') == 1


@pytest.mark.parametrize("part_id", ["two words", "", "seen"])
def test_a_wrong_id_is_refused(app: Flask, part_id: str) -> None:
    with app.test_request_context("/"):
        live_part("seen", caller=lambda: "")
        with pytest.raises(ValueError, match="live part"):
            live_part(part_id, caller=lambda: "")
        assert list(g.live_page.parts) == ["seen"]


def hashes_of(response: TestResponse) -> str:
    return "".join(HASH.findall(response.text))


def test_the_dashboard_sends_only_what_changed(admin: Console) -> None:
    held = hashes_of(admin.get("/"))
    refresh = {HEADER: held, "X-Refresh": "auto"}
    assert admin.get("/", headers=refresh).status_code == 204
    add_job(add_group())
    answer = admin.get("/", headers=refresh)
    assert answer.mimetype == "application/json"
    assert "figures" in answer.get_json()["parts"]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/jobinfo",
        "/jobinfo/{job}",
        "/jobinfo/{job}?tab=runs",
        "/joblog",
        "/alarms",
        "/incidents",
        "/promises",
        "/connect",
    ],
)
def test_a_refresh_has_every_part_of_its_page(admin: Console, path: str) -> None:
    path = path.format(job=add_job(add_group()))
    ids = re.findall(r'data-part="([\w-]+)"', admin.get(path).text)
    assert "menu-jobs" in ids
    assert sorted(admin.get(path, headers={HEADER: ""}).get_json()["parts"]) == sorted(ids)


def test_an_error_stays_whole_and_a_page_with_the_menu_only_has_no_change(admin: Console) -> None:
    held = "".join(re.findall(r'data-hash="([^"]+)"', admin.get("/help").text))
    for path, status, mimetype in (("/help", 204, None), ("/no-such-page", 404, "text/html")):
        answer = admin.get(path, headers={HEADER: held, "Accept": "text/html"})
        assert (answer.status_code, answer.mimetype) == (status, mimetype)
