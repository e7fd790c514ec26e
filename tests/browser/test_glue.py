"""GLUE IDE in the browser: code and run in one screen, the height of the output, colours of the code."""

import pytest
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import update

from app.database.engine import session_scope
from app.models.job import Job
from tests.browser.serving import Console, fake_worker
from tests.support.browser import OpenPage

pytestmark = pytest.mark.browser

SCREEN = {"width": 1440, "height": 900}


def ide(console: Console, open_page: OpenPage) -> Page:
    return open_page(f"/jobcode?jobId={console.seeded.jobs[5]}", viewport=SCREEN)


def box(part: Locator) -> tuple[float, float]:
    """Return the top and the foot of a part of the page."""
    bounds = part.bounding_box()
    assert bounds is not None
    return bounds["y"], bounds["y"] + bounds["height"]


def test_code_and_run_are_on_one_screen(console: Console, open_page: OpenPage) -> None:
    page = ide(console, open_page)
    field = page.locator("#try-param")
    assert box(page.locator("#try"))[1] < SCREEN["height"]
    before = box(field)
    field.fill("day=1")
    assert box(field)[1] - box(field)[0] == before[1] - before[0] < 40, "one row"
    with fake_worker(console):
        page.get_by_role("button", name="Run once").click()
        expect(page.locator("#try .log-line").first).to_contain_text("begin, parameter")
    top, foot = box(page.locator("#try .log-view"))
    assert foot < SCREEN["height"]
    assert foot - top > 140, "room for seven lines"
    assert box(page.locator(".cm-editor"))[1] < top
    assert box(page.get_by_role("button", name="Save"))[1] < top
    assert page.evaluate("document.documentElement.scrollHeight") <= SCREEN["height"]


def test_the_output_gets_higher_with_the_arrow_keys(console: Console, open_page: OpenPage) -> None:
    page = ide(console, open_page)
    split = page.get_by_role("separator", name="Height of the output")
    expect(split).to_be_hidden()
    with fake_worker(console):
        page.get_by_role("button", name="Run once").click()
        expect(page.locator("#try .log-line").first).to_contain_text("begin, parameter")
    top, _foot = box(page.locator("#try"))
    split.press("ArrowUp")
    assert box(page.locator("#try"))[0] == pytest.approx(top - 24, abs=1)
    page.mouse.move(700, top - 22)
    page.mouse.down()
    page.mouse.move(700, top + 60)
    page.mouse.up()
    assert box(page.locator("#try"))[0] == pytest.approx(top + 60, abs=4)
    expect(split).not_to_have_attribute("aria-valuenow", "44")


def test_the_code_of_php_and_javascript_has_colours(console: Console, open_page: OpenPage) -> None:
    job_id = console.seeded.jobs[5]
    samples = {
        "GLUE_PHP": ("<?php\n# note\n$total = count($argv);\nif ($total) echo 'x';\n", ["# note", "'x'"]),
        "GLUE_NODEJS": ("// note\nconst total = 'x';\n", ["// note", "'x'"]),
    }
    with session_scope() as session:
        job = session.get(Job, job_id)
        assert job is not None
        kept = {"glue_type": job.glue_type, "glue_source": job.glue_source}
    try:
        for kind, (source, coloured) in samples.items():
            with session_scope() as session:
                session.execute(
                    update(Job).where(Job.id == job_id).values(glue_type=kind, glue_source=source)
                )
            page = ide(console, open_page)
            for text in coloured:
                expect(page.locator(".cm-line > span", has_text=text).first).to_have_text(text)
    finally:
        with session_scope() as session:
            session.execute(update(Job).where(Job.id == job_id).values(**kept))
