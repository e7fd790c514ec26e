"""Values that no client of ours sends: forged cursors, and characters that no database stores."""

import base64
import json
import re
from typing import Any

import pytest

from app.api.v1.resources import all_resources
from app.domain.enums import GlueType
from tests.services.backfills.backfill_steps import draft, minutely, start
from tests.support.api_v1 import Api
from tests.support.factories import make_job
from tests.support.plan import every_database

LISTS = sorted(
    each.path
    for resource in all_resources()
    for each in resource.operations
    if each.method == "GET" and each.query is not None and "cursor" in each.query.model_fields
)
FORGED = [
    (2**63 - 1,),
    (-(2**63) + 1,),
    (2**63 - 1, 2**63 - 1),
    (-5, -5),
    ("\0", 1),
    ("\ud800", 1),
    ("a", 2**63 - 1),
    ("\0", 1, "\0"),
]


def cursor_of(position: tuple[Any, ...]) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


@every_database
def test_a_forged_cursor_is_a_position_or_refused(api: Api) -> None:
    job = make_job(glue_type=GlueType.GLUE_SHELL)
    ids = {"job": job.id, "group": job.job_group, "backfill": start(minutely(), draft())}
    for path in LISTS:
        own = re.sub(r"<int:(\w+)_id>", lambda match: str(ids[match[1]]), path)
        for position in FORGED:
            answer = api.get(own, query_string={"cursor": cursor_of(position)})
            assert answer.status_code in (200, 422), (path, position, answer.data)


@every_database
@pytest.mark.parametrize("source", ["a\0b", "a\napply of another", "\x1b[2J"])
def test_the_source_of_an_apply_is_one_line_of_text(api: Api, source: str) -> None:
    sections = {"groups": {"reports": {}}, "jobs": {}, "channels": {}}
    answer = api.post("/code/apply", {"document": {"format": 1, **sections}, "source": source})
    assert [each["field"] for each in answer.get_json()["errors"]] == ["source"]


@pytest.mark.parametrize("address", ["", " "])
def test_an_empty_address_does_not_stand_for_all(api: Api, address: str) -> None:
    answer = api.post(f"/jobs/{make_job().id}/runs", {"addresses": [address]})
    assert [each["field"] for each in answer.get_json()["errors"]] == ["addresses.0"]


def test_a_body_of_wrong_members_is_not_answered_with_all_of_them(api: Api) -> None:
    answer = api.post("/runs:batch", {"runs": [{f"m{number}": 1 for number in range(20_000)}]})
    assert [each["field"] for each in answer.get_json()["errors"]] == ["body"]
    assert "20001" in answer.get_json()["detail"]
    answer = api.post("/runs:batch", {"runs": [{"job_id": 1, 100_000 * "m": 1}]})
    assert (answer.status_code, len(answer.data) < 2_000) == (422, True)
