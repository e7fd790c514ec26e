"""Java admin on the same database: the console refuses schedules that the Java admin cannot read."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.database.engine import read_scope
from app.models.job import Job
from app.settings.config import Config
from tests.console.pages import submit, text_of
from tests.support.console import Console, add_group
from tests.support.console_jobs import FORM

#: the rule is tested in tests/services
DATABASES_ENOUGH = ("sqlite",)

UNIX_CRON = "0 3 * * *"
BEAN = {
    "jobDesc": "nightly report",
    "author": "ann",
    "scheduleType": "CRON",
    "scheduleConf": UNIX_CRON,
    "misfireStrategy": "DO_NOTHING",
    "executorRouteStrategy": "FIRST",
    "executorHandler": "demoJobHandler",
    "executorBlockStrategy": "SERIAL_EXECUTION",
    "glueType": "BEAN",
}


@pytest.fixture
def settings(settings: Config) -> Config:
    return replace(settings, shared_with_java=True)


def count_jobs() -> int:
    with read_scope() as session:
        return session.query(Job).count()


def test_the_form_refuses_it_at_the_field(admin: Console) -> None:
    page = submit(admin, "/jobinfo/new", **{**FORM, "job_group": add_group(), "cron": UNIX_CRON})
    assert page.status_code == 400
    assert "Java admin" in page.text.split('id="cron-error"')[1]
    assert count_jobs() == 0


def test_the_json_endpoint_refuses_it(admin: Console) -> None:
    answer: dict[str, Any] = admin.call("/jobinfo/add", **BEAN, jobGroup=add_group())
    assert answer["code"] == 500
    assert "Java admin" in answer["msg"]
    assert count_jobs() == 0


def test_an_import_refuses_it(admin: Console) -> None:
    add_group()
    text = json.dumps({"format": 1, "jobs": [{**BEAN, "appname": "sample-app"}]})
    page = submit(admin, "/jobinfo/import", text=text, apply="1")
    assert "Java admin" in text_of(page)
    assert count_jobs() == 0


def test_limits_are_refused_at_their_fields_and_their_page_says_so(admin: Console) -> None:
    form = {**FORM, "job_group": add_group(), "cron": "0 0 3 * * ?", "max_running": "1"}
    page = submit(admin, "/jobinfo/new", **form)
    assert page.status_code == 400
    assert "Java admin" in page.text.split('id="max_running-error"')[1]
    assert "Runs that a Java admin on the same database starts would not be counted" in text_of(
        admin.get("/limits")
    )
