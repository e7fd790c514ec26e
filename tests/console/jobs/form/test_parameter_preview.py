"""Preview of a parameter with placeholders: in the forms of a job and of a run, with and without scripts."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from app.models.fire import Fire
from app.models.log import JobLog
from app.models.variable import Variable
from tests.console.pages import submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, only_row, save

FORM: dict[str, Any] = {
    "job_desc": "Close the books",
    "glue_type": "BEAN",
    "executor_handler": "demo",
    "schedule_type": "CRON",
    "cron": "0 30 2 * * ? 2098",
    "time_zone": "UTC",
    "fill_parameter": "y",
}
NEXT = ("2098-01-01 02:30:00", "2098-01-02 02:30:00", "2098-01-03 02:30:00")


@pytest.fixture
def group_id(admin: Console) -> int:
    return add_group()


def preview(console: Console, group_id: int, text: str, **more: Any) -> str:
    form = {**FORM, "job_group": group_id, "executor_param": text, **more}
    answer = submit(console, "/jobinfo/parameter-preview", **form)
    assert answer.status_code == 200
    return text_of(answer)


def test_the_form_shows_what_the_next_three_runs_would_get(admin: Console, group_id: int) -> None:
    page = preview(admin, group_id, "${time-1d:yyyy-MM-dd} ${parent.result.file:-x} ${run.id} ${job.id}")
    assert "The next runs would get (UTC):" in page
    for at, day in zip(NEXT, ("2097-12-31", "2098-01-01", "2098-01-02"), strict=True):
        assert f"{at} {day} ‹parent.result.file› ‹run.id› ‹job.id›" in page
    assert "is filled in only when a run is sent" in page


def test_secrets_are_named_and_variables_filled_in(admin: Console, group_id: int) -> None:
    save(Variable(name="REGION", group_id=group_id, value="eu-1"))
    save(Variable(name="TOKEN", group_id=group_id, secret="s3cr3t-value-of-some-length"))
    page = preview(admin, group_id, "${var.REGION} ${secret.TOKEN}", schedule_type="NONE")
    assert "A run would get (UTC):" in page
    assert "eu-1 ‹secret TOKEN›" in page
    assert "${var.REGION} ${secret.TOKEN}" in page
    assert "s3cr3t" not in page


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("${time:q}", "'q' in '${time:q}' is not a letter of a date pattern"),
        ("${var.GONE}", "'${var.GONE}': variable GONE does not exist here"),
    ],
)
def test_what_is_wrong_is_said(admin: Console, group_id: int, text: str, error: str) -> None:
    assert error in preview(admin, group_id, text)


def test_nothing_is_shown_of_a_parameter_that_is_sent_as_it_is(admin: Console, group_id: int) -> None:
    assert preview(admin, group_id, "${time:q}", fill_parameter="").strip() == ""


def test_nothing_is_shown_of_a_group_that_the_user_may_not_edit(
    admin: Console, normal_user: Callable[..., Console], group_id: int
) -> None:
    save(Variable(name="REGION", group_id=group_id, value="eu-1"))
    assert preview(normal_user(), group_id, "${var.REGION}").strip() == ""


def test_a_form_that_was_refused_shows_it_without_scripts(admin: Console, group_id: int) -> None:
    form = {**FORM, "job_group": group_id, "executor_param": "${time:yyyy}", "job_desc": ""}
    page = submit(admin, "/jobinfo/new", **form)
    assert page.status_code == 400
    assert f"{NEXT[0]} 2098" in text_of(page)


def test_an_error_of_the_language_is_at_its_field(admin: Console, group_id: int) -> None:
    form = {**FORM, "job_group": group_id, "executor_param": "${time:q}"}
    page = submit(admin, "/jobinfo/new", **form)
    assert page.status_code == 400
    assert re.search(r'id="executor_param-error">.*?is not a letter of a date pattern', page.text, re.DOTALL)
    assert "parameter-preview bad" not in page.text


def filling_job(group_id: int, text: str) -> int:
    return add_job(group_id, executor_param=text, fill_parameter=1, time_zone="UTC")


def run_preview(console: Console, job_id: int, **form: Any) -> str:
    answer = submit(console, f"/jobinfo/{job_id}/parameter-preview", **form)
    assert answer.status_code == 200
    return text_of(answer)


def test_a_run_by_hand_stands_for_the_given_time(admin: Console, group_id: int) -> None:
    job_id = filling_job(group_id, "${time:yyyy-MM-dd HH:mm} ${job.id}")
    form = {"executor_param": "${time:yyyy-MM-dd HH:mm} ${job.id}", "logical_time": "2024-05-01T08:00:00"}
    assert f"2024-05-01 00:00 {job_id}" in run_preview(admin, job_id, **form)


def test_the_page_of_a_run_by_hand_shows_it_without_scripts(admin: Console, group_id: int) -> None:
    job_id = filling_job(group_id, "for ${job.id}")
    page = text_of(admin.get(f"/jobinfo/{job_id}/run"))
    assert f"for {job_id}" in page
    assert "would get" not in text_of(admin.get(f"/jobinfo/{add_job(group_id)}/run"))


def test_a_run_by_hand_has_no_parent(admin: Console, group_id: int) -> None:
    job_id = filling_job(group_id, "${parent.result.file:-none}")
    assert "none" in run_preview(admin, job_id, executor_param="${parent.result.file:-none}")
    assert "the run has no parent" in run_preview(admin, job_id, executor_param="${parent.result}")


def test_run_again_sends_the_same_text(admin: Console, group_id: int) -> None:
    text = "${parent.result.file} ${run.id}"
    job_id = filling_job(group_id, text)
    log = save(
        JobLog(
            job_group=group_id,
            job_id=job_id,
            trigger_time=T0,
            trigger_code=200,
            handle_code=200,
            executor_param=text,
            param_form=1,
            filled_param="/data/a.csv 41",
        )
    )
    again = f"/jobinfo/{job_id}/run?log={log.id}"
    assert "/data/a.csv 41" in text_of(admin.get(again))
    address = f"/jobinfo/{job_id}/parameter-preview?log={log.id}"
    assert "‹parent.result.file›" in text_of(
        submit(admin, address, executor_param=text, logical_time="2024-05-02T08:00:00")
    )
    assert submit(admin, again, executor_param=text, logical_time="").status_code == 303
    assert only_row(Fire).repeats_log_id == log.id


def test_a_secret_counts_in_the_parameter_of_the_job_alone(admin: Console, group_id: int) -> None:
    save(Variable(name="TOKEN", group_id=group_id, secret="s3cr3t-value-of-some-length"))
    job_id = filling_job(group_id, "a ${secret.TOKEN}")
    assert "a ‹secret TOKEN›" in run_preview(admin, job_id, executor_param="a ${secret.TOKEN}")
    error = "secrets can only stand in the job's own parameter"
    assert error in run_preview(admin, job_id, executor_param="b ${secret.TOKEN}")
    assert error in text_of(submit(admin, f"/jobinfo/{job_id}/run", executor_param="b ${secret.TOKEN}"))
    assert submit(admin, f"/jobinfo/{job_id}/run", executor_param="a ${secret.TOKEN}").status_code == 303
