"""Parameters of typed handlers as fields: in Run once and in the job form."""

import json
import re

import pytest

from app.models.fire import Fire
from app.models.registry import Registration
from tests.console.pages import submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_jobs import FORM, job_of
from tests.support.factories import T0, all_rows, only_row, save

SCHEMA = {
    "properties": {
        "day": {"type": "string", "format": "date"},
        "limit": {"type": "integer", "default": 100},
        "dry": {"type": "boolean", "default": True},
        "mode": {"enum": ["fast", "<b>"], "default": "fast"},
    },
    "required": ["day"],
}


#: the job form while it shows the fields
FIELDS = {name: value for name, value in FORM.items() if name != "executor_param"} | {
    "executor_handler": "typedHandler"
}


@pytest.fixture
def job_id(admin: Console) -> int:
    return add_job(add_group())


@pytest.fixture
def typed_job_id(admin: Console) -> int:
    """A job whose executor has announced the parameters of its handler."""
    save(
        Registration(
            registry_group="EXECUTOR",
            registry_key="sample-app",
            registry_value="http://10.0.0.9:9999/",
            update_time=T0,
            schemas="0" * 16 + json.dumps({"typedHandler": SCHEMA}),
        )
    )
    return add_job(add_group(), executor_handler="typedHandler", executor_param="")


def version_of(admin: Console, path: str) -> str:
    """Return what a page sends with the fields."""
    found = re.search(r'name="typed" value="(\w+)"', admin.get(path).text)
    assert found is not None
    return found[1]


def test_a_typed_handler_has_a_field_for_each_parameter(
    admin: Console, job_id: int, typed_job_id: int
) -> None:
    page = admin.get(f"/jobinfo/{typed_job_id}/run").text
    assert "data-starts-with-fields" in page
    assert re.search(r'<fieldset class="parameter-fields" data-parameter-fields hidden disabled>', page)
    assert re.search(r'<input[^>]*name="parameter0"[^>]*required[^>]*type="date"', page)
    assert re.search(r'<input[^>]*name="parameter1"[^>]*placeholder="100"[^>]*type="number"', page)
    assert re.search(r'<input checked[^>]*name="parameter2"', page)
    assert re.search(r'<option[^>]* value="">Default: fast</option><option value="fast">fast</option>', page)
    assert '<option value="&lt;b&gt;">&lt;b&gt;</option>' in page
    assert "<textarea" in page, "without scripts the text is entered"
    assert "parameter0" not in admin.get(f"/jobinfo/{job_id}/run").text


def test_the_fields_make_the_parameter(admin: Console, typed_job_id: int) -> None:
    path = f"/jobinfo/{typed_job_id}/run"
    submit(admin, path, typed=version_of(admin, path), parameter0="2024-05-01", parameter1="5")
    assert only_row(Fire).executor_param == '{"day":"2024-05-01","limit":5,"dry":false}'


def test_errors_are_shown_at_the_fields(admin: Console, typed_job_id: int) -> None:
    path = f"/jobinfo/{typed_job_id}/run"
    answer = submit(admin, path, typed=version_of(admin, path), parameter1="many")
    assert answer.status_code == 400
    assert 'id="parameter0-error"' in answer.text
    assert "This parameter is required" in text_of(answer)
    assert '"many" is not a whole number' in text_of(answer)
    assert all_rows(Fire) == []


def test_the_text_is_taken_as_it_is(admin: Console, typed_job_id: int) -> None:
    submit(admin, f"/jobinfo/{typed_job_id}/run", executor_param="day=2024-05-01")
    assert only_row(Fire).executor_param == "day=2024-05-01"


def test_fields_of_another_version_of_the_handler_are_refused(admin: Console, typed_job_id: int) -> None:
    answer = submit(admin, f"/jobinfo/{typed_job_id}/run", typed="1", parameter0="2024-05-01")
    assert answer.status_code == 400
    assert "parameters have changed" in text_of(answer)
    assert all_rows(Fire) == []


def test_the_job_form_has_the_fields_too(admin: Console, typed_job_id: int) -> None:
    path = f"/jobinfo/{typed_job_id}/edit"
    fields = FIELDS | {"job_group": add_group(), "typed": version_of(admin, path)}
    wrong = submit(admin, path, **fields | {"parameter1": "many", "job_desc": ""})
    assert wrong.status_code == 400
    assert '"many" is not a whole number' in text_of(wrong)
    assert "3 fields are wrong" in text_of(wrong)
    submit(admin, path, **fields | {"parameter0": "2024-05-01", "parameter1": "5", "parameter2": "y"})
    assert job_of(typed_job_id).executor_param == '{"day":"2024-05-01","limit":5,"dry":true}'


def test_an_edit_without_a_new_parameter_keeps_its_text(admin: Console, typed_job_id: int) -> None:
    path = f"/jobinfo/{typed_job_id}/edit"
    fields = FIELDS | {"job_group": add_group(), "typed": version_of(admin, path), "parameter2": "y"}
    submit(admin, path, **fields | {"job_desc": "renamed"})
    job = job_of(typed_job_id)
    assert (job.job_desc, job.executor_param) == ("renamed", "")


def test_the_job_form_asks_for_the_fields_of_another_handler(admin: Console, typed_job_id: int) -> None:
    part = f"/jobinfo/parameters?job_group={add_group()}&executor_handler="
    assert "parameter0" in admin.get(part + "typedHandler").text
    assert admin.get(part + "other").status_code == 204
    assert "parameter0" not in admin.get(part + "other&shown=1").text
    assert admin.get(part + "typedHandler&glue_type=GLUE_PYTHON").status_code == 204
