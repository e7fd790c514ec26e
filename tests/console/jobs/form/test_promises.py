"""Promises in the form of a job: rows of inputs, errors at them, what holds by the executor, suggestions."""

import json
import re

import pytest

from app.clock import HOUR_MS, SECOND_MS, now_ms
from app.database.engine import session_scope
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import make_log, only_row, save

pytestmark = pytest.mark.databases("sqlite")

FORM = {
    "job_desc": "nightly",
    "author": "ann",
    "schedule_type": "CRON",
    "cron": "0 0 3 * * ?",
    "glue_type": "BEAN",
    "executor_handler": "h",
    "executor_route_strategy": "FIRST",
    "misfire_strategy": "DO_NOTHING",
    "executor_block_strategy": "SERIAL_EXECUTION",
    "delivery": "auto",
    "retry_backoff_percent": "100",
}


def rows(*promises: tuple[str, ...]) -> dict[str, str]:
    """Return the inputs of promises: kind, value, unit, then."""
    parts = ("kind", "value", "unit", "then")
    return {
        f"promise{number}_{part}": text
        for number, row in enumerate(promises)
        for part, text in zip(parts, row, strict=False)
    }


def stored() -> list[dict[str, object]]:
    members = json.loads(only_row(Job).promises or "[]")
    return [{name: value for name, value in each.items() if value != "alarm"} for each in members]


def test_rows_are_stored_and_come_back_in_their_largest_unit(admin: Console) -> None:
    group_id = add_group()
    save(AlarmChannel(name="pager", kind="webhook", settings="{}", for_all=1))
    inputs = rows(
        ("starts_within", "1.5", "m"),
        ("", "7", "s"),
        ("finishes_by", "6:00 +1d"),
        ("takes_usual_times", "2,5"),
        ("fails_at_most", "2", "s", "switch_off"),
    )
    escalation = {"escalation_channel": "pager", "escalation_minutes": "15"}
    answer = submit(admin, "/jobinfo/new", **FORM, job_group=group_id, **inputs, **escalation)
    page = path_after(answer).partition("?")[0]
    assert stored() == [
        {"kind": "starts_within", "s": 90},
        {"kind": "finishes_by", "at": "06:00+1d"},
        {"kind": "takes_usual_times", "times": 2.5},
        {"kind": "fails_at_most", "n": 2, "then": "switch_off"},
    ]
    assert json.loads(only_row(Job).escalation or "") == {"channel": "pager", "after_minutes": 15}
    form = markup_of(admin.get(f"{page}/edit"))
    assert re.search(r'id="promise0_value"[^>]* value="90"', form)
    assert re.search(r'id="promise1_value"[^>]* value="06:00\+1d"', form)
    assert '<option selected value="pager">' in form
    assert "starts within 90 s · succeeds by 06:00 of the next day" in form


def test_a_form_without_the_inputs_leaves_the_promises_as_they_are(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, promises='[{"kind":"takes_at_most","s":60}]')
    submit(admin, f"/jobinfo/{job_id}/edit", **FORM, job_group=group_id)
    assert stored() == [{"kind": "takes_at_most", "s": 60}]
    submit(admin, f"/jobinfo/{job_id}/edit", **FORM, job_group=group_id, **rows(("", "")))
    assert stored() == []


def test_a_copy_has_the_promises_of_its_original(admin: Console) -> None:
    job_id = add_job(add_group(), promises='[{"kind":"takes_at_most","s":60}]')
    assert '<option selected value="takes_at_most">' in markup_of(admin.get(f"/jobinfo/{job_id}/copy"))


def test_each_error_is_at_its_input(admin: Console) -> None:
    group_id = add_group()
    inputs = rows(
        ("", ""),
        ("starts_within", "soon", "s"),
        ("finishes_by", "25:00"),
        ("takes_usual_times", "1"),
        ("fails_at_most", "1.5"),
    )
    escalation = {"escalation_channel": "gone", "escalation_minutes": "0"}
    page = submit(admin, "/jobinfo/new", **FORM, job_group=group_id, **inputs, **escalation)
    assert page.status_code == 400
    text = markup_of(page)
    for name, message in (
        ("promise1_value", "&#34;soon&#34; is not a length from a second to a year"),
        ("promise2_value", "&#34;25:00&#34; is not a time such as 06:00"),
        ("promise3_value", "&#34;1&#34; is not a number from 1.1 to 1000"),
        ("promise4_value", "&#34;1.5&#34; is not a whole number from 0 to 1000"),
        ("escalation_channel", "There is no alarm channel"),
        ("escalation_minutes", "&#34;0&#34; is not a whole number from 1 to 10080"),
    ):
        assert message in text.partition(f'id="{name}-error"')[2][:300], name
    assert 'id="section-promises" open' in text


def test_a_schedule_without_instants_refuses_promises_about_them(admin: Console) -> None:
    form = FORM | {"schedule_type": "FIX_DELAY", "delay_s": "60"}
    inputs = rows(("takes_at_most", "5", "s"), ("starts_within", "5", "s"))
    page = submit(admin, "/jobinfo/new", **form, job_group=add_group(), **inputs)
    assert page.status_code == 400
    error = markup_of(page).partition('id="promise1_kind-error"')[2][:300]
    assert (
        "“starts within” needs times that follow from the schedule, which Fixed delay does not have" in error
    )


def test_what_holds_by_the_executor_is_shown(admin: Console) -> None:
    group_id = add_group()
    with session_scope() as session:
        session.get_one(
            Group, group_id
        ).promises = '[{"kind":"starts_within","s":60},{"kind":"takes_at_most","s":600}]'
    job_id = add_job(group_id, promises='[{"kind":"takes_at_most","s":60}]')
    text = " ".join(text_of(admin.get(f"/jobinfo/{job_id}/edit")).split())
    assert "From the executor Sample: starts within 1 min A promise of the same kind" in text
    query = f"job_group={group_id}&schedule_type=NONE"
    assert "starts within" not in text_of(admin.get(f"/jobinfo/promise-defaults?{query}"))
    assert "takes at most 10 min" in text_of(admin.get(f"/jobinfo/promise-defaults?{query}"))


def test_suggestions_follow_from_the_last_runs(admin: Console) -> None:
    group_id = add_group()
    job = Job(id=add_job(group_id), job_group=group_id, executor_handler="h", executor_fail_retry_count=0)
    path = f"/jobinfo/{job.id}/promise-suggestions"
    assert "0 successes in the last 30 days; a suggestion needs 20." in text_of(admin.get(path))
    for number in range(20):
        began_ms = (now_ms() - number * HOUR_MS) // SECOND_MS * SECOND_MS
        make_log(job, trigger_time=began_ms, handle_code=200, duration_ms=40 * SECOND_MS)
    text = text_of(admin.get(path))
    assert "takes at most 90 s 99% of the runs took at most 40 s, twice that" in text
    assert "succeeds at least every 90 min usual interval: 1 h 0 min" in text
    assert "From 20 successes of the last 30 days." in text
    without_scripts = admin.get(f"/jobinfo/{job.id}/edit?suggest=1")
    assert "takes at most 90 s" in text_of(without_scripts)
    assert 'id="section-promises" open' in markup_of(without_scripts)
