"""Commands ``jobs``."""

import json
import sys
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from click.shell_completion import BashComplete

from executor_client.cli.main import duetime
from executor_client.cli.output.tables import Column, line, width_of, widths
from tests.cli.fake_api import FakeApi
from tests.support.cli import Run, error_of, job


def test_jobs_are_listed_over_all_pages(api: FakeApi, run: Run) -> None:
    pages = {
        None: ([job(1)], "next"),
        "next": ([job(22, description="日报", last_run={"state": "failed"})], None),
    }

    def answer(seen: Any) -> Any:
        items, cursor = pages[seen.query.get("cursor")]
        return {"items": items, "next_cursor": cursor}

    api.on("GET", "/jobs", answer)
    api.page("/groups", {"id": 1, "app_name": "my-app"})
    assert run("jobs", "list").stdout == (
        "ID  DESCRIPTION  EXECUTOR  HANDLER  SCHEDULE          ON   LAST RUN\n"
        " 1  job 1        my-app    report   CRON 0 0 3 * * ?  yes\n"
        "22  日报         my-app    report   CRON 0 0 3 * * ?  yes  failed\n"
    )
    assert run("jobs", "list", "-q").stdout == "1\n22\n"
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert [each["id"] for each in load(run("jobs", "list", "-o", form).stdout)] == [1, 22]


def test_a_job_that_runs_after_others_is_listed_with_them(api: FakeApi, run: Run) -> None:
    after = {"schedule_type": "NONE", "schedule": "", "enabled": False, "runs_after": {"jobs": [1, 2]}}
    api.page("/jobs", job(3, **after))
    api.page("/groups", {"id": 1, "app_name": "my-app"})
    assert run("jobs", "list").stdout.splitlines()[1] == " 3  job 3        my-app    report   after 1, 2  -"


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "trigger", ""),
        ("jobs", "stop", " "),
        ("jobs", "list", "--group", ""),
        ("runs", "list", "--job", ""),
        ("runs", "kill", ""),
        ("runs", "tail", "-f", ""),
        ("runs", "list", "--group", ""),
        ("instances", "list", "--group", ""),
        ("instances", "drain", "", "http://127.0.0.1:9"),
    ],
)
def test_an_empty_name_names_nothing(api: FakeApi, run: Run, command: tuple[str, ...]) -> None:
    api.page("/jobs", job(7, handler="", run_mode="GLUE_SHELL"))
    api.page("/(groups|users|runs|instances)")
    assert error_of(run(*command), 2).endswith(" is empty")
    assert api.requests("POST") == []


@pytest.mark.parametrize("command", ["show", "kill", "tail"])
def test_a_run_id_in_another_encoding_is_one_line(api: FakeApi, run: Run, command: str) -> None:
    assert error_of(run("runs", command, "\udcff"), 2) == "not valid UTF-8: '\\udcff'"


def test_texts_of_several_lines_are_blocks(api: FakeApi, run: Run) -> None:
    api.on("GET", "/jobs/1", {"id": 1, "text": "one\ntwo"})
    assert run("jobs", "show", "1", "-o", "yaml").stdout == "id: 1\ntext: |-\n  one\n  two\n"
    assert run("jobs", "show", "1").stdout == "id    1\ntext  one\n      two\n"


def test_an_empty_list_is_a_document_too(api: FakeApi, run: Run) -> None:
    api.page("/jobs")
    api.page("/groups")
    assert run("jobs", "list", "-o", "json").stdout == "[]\n"
    assert run("jobs", "list", "-o", "yaml").stdout == "[]\n"
    assert run("jobs", "list").stdout == ""


def test_a_job_is_named_by_id_description_or_handler(api: FakeApi, run: Run) -> None:
    jobs = [job(7, description="Nightly report", handler="nightly"), job(8), job(9, description="report")]
    api.page("/jobs", *jobs)
    for each in jobs:
        api.on("GET", f"/jobs/{each['id']}", each)
    for word, job_id in (("7", 7), ("Nightly report", 7), ("nightly", 7), ("job 8", 8)):
        assert json.loads(run("jobs", "show", word, "-o", "json").stdout)["id"] == job_id
    ended = run("jobs", "show", "report")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr == (
        "Error: 2 jobs have the name report; give the id of one:\n  8  job 8 (report)\n  9  report (report)\n"
    )
    assert error_of(run("jobs", "show", "weekly"), 1) == "there is no job weekly that you may see"


def test_schedules_are_switched(api: FakeApi, run: Run) -> None:
    for job_id in (7, 8):
        api.on("GET", f"/jobs/{job_id}", job(job_id))
        api.on("POST", f"/jobs/{job_id}/(start|stop)", job(job_id))
    assert run("jobs", "stop", 7, 8).stdout == "job 7 job 7: off\njob 8 job 8: off\n"
    assert run("jobs", "start", 7, 9).exit_code == 1
    assert api.requests("POST") == ["/jobs/7/stop", "/jobs/8/stop"]


def test_names_of_jobs_are_completed(api: FakeApi, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    api.page("/jobs", job(7, handler="nightly"), job(71))
    completion = BashComplete(duetime, {}, "duetime", "_DUETIME_COMPLETE")
    for start, words in (("n", ["nightly"]), ("7", ["7", "71"]), ("x", [])):
        found = completion.get_completions(["jobs", "trigger"], start)
        assert [each.value for each in found] == words
    monkeypatch.setenv("XXL_JOB_URL", "http://127.0.0.1:9")
    assert completion.get_completions(["jobs", "trigger"], "") == []


def test_colours_are_for_terminals_only(api: FakeApi, run: Run) -> None:
    api.page("/jobs", job(1))
    api.page("/groups")
    assert "\x1b" not in run("jobs", "list").output


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Mock(isatty=lambda: True))
    monkeypatch.setenv("COLUMNS", "40")
    columns = (
        Column("ID", lambda item: str(item["id"])),
        Column("TEXT", lambda item: item["text"], cut=True),
    )
    item = {"id": 7, "text": "数据" * 20 + "\x1b[31m"}
    text = line(columns, widths(columns, [item]), item)
    assert text == "7   " + "数据" * 8 + "数" + "…"
    assert width_of(text) <= 40


PREVIEW = {
    "fill_parameter": True,
    "time_zone": "UTC",
    "items": [
        {
            "logical_time": "2030-01-31T02:30:00.000Z",
            "local": "2030-01-31T02:30:00+00:00",
            "param": "2030-01-30 ‹secret TOKEN›",
            "reason": "",
        },
        {
            "logical_time": "2030-02-01T02:30:00.000Z",
            "local": "2030-02-01T02:30:00+00:00",
            "param": None,
            "reason": "variable X does not exist",
        },
    ],
}


def test_the_parameter_of_the_next_runs_is_previewed(api: FakeApi, run: Run) -> None:
    api.on("GET", "/jobs/7", job(7))
    api.on("GET", "/jobs/7/parameter-preview", PREVIEW)
    assert run("jobs", "preview-parameter", "7", "--count", "2").stdout == (
        "LOGICAL TIME               PARAMETER\n"
        "2030-01-31T02:30:00+00:00  2030-01-30 ‹secret TOKEN›\n"
        "2030-02-01T02:30:00+00:00  variable X does not exist\n"
    )
    assert api.seen[-1].query["count"] == "2"
    run("jobs", "preview-parameter", "7", "--logical-time", "2030-01-31T02:30:00Z")
    assert api.seen[-1].query["logical_time"].startswith("2030-01-31T")
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert load(run("jobs", "preview-parameter", "7", "-o", form).stdout) == PREVIEW


def test_a_parameter_that_is_not_filled_in_is_noted(api: FakeApi, run: Run) -> None:
    api.on("GET", "/jobs/7", job(7))
    api.on("GET", "/jobs/7/parameter-preview", {**PREVIEW, "fill_parameter": False})
    assert "placeholders of this job are not filled in" in run("jobs", "preview-parameter", "7").stderr
