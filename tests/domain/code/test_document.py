"""Document of jobs as code: what is refused, and the stored form of what is not."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.domain.code.document import JOBS_MAX, Members, read_document
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


def job(**members: Any) -> dict[str, Members]:
    return {"sample/close": members}


@truth_table(
    "members, stored",
    [
        ({"description": " Close  the books "}, {"description": "Close  the books"}),
        ({"param": " keep "}, {"param": " keep "}),
        ({"not_before": "2030-01-31T08:00:00+08:00"}, {"not_before": "2030-01-31T00:00:00.000Z"}),
        ({"not_before": None}, {"not_before": None}),
        (
            {"children": ["mail", "other/send", "mail"]},
            {"children": ["sample/mail", "other/send"]},
        ),
        ({"tags": ["b", "A", "a"]}, {"tags": ["A", "b"]}),
        ({"alarm_channels": ["b", "a", "b"]}, {"alarm_channels": ["a", "b"]}),
        (
            {"code": {"language": "GLUE_SHELL", "source": "a\r\nb"}},
            {"code": {"language": "GLUE_SHELL", "source": "a\nb"}},
        ),
    ],
)
def test_values_have_their_stored_form(members: Members, stored: Members) -> None:
    assert read_document({}, job(**members), {}).jobs["sample/close"] == stored


@truth_table(
    "sections, fields",
    [
        ({"jobs": {"close": {}}}, ["jobs.close"]),
        ({"jobs": {"sample/a b": {}}}, ["jobs.sample/a b"]),
        ({"jobs": {"sample/" + "a" * 121: {}}}, ["jobs.sample/" + "a" * 121]),
        ({"jobs": job(schedule="0 0 2 * * ?")}, ["jobs.sample/close.schedule"]),
        ({"jobs": job(code={"language": "BEAN"})}, ["jobs.sample/close.code.language"]),
        ({"jobs": job(not_before="tomorrow")}, ["jobs.sample/close.not_before"]),
        (
            {"jobs": job(schedule="1", tags=["a,b"]), "groups": {"sample": {"addresses": ["http://a:1/"]}}},
            ["groups.sample.addresses", "jobs.sample/close.schedule", "jobs.sample/close.tags"],
        ),
        ({"channels": {"Ops": {"kind": "pigeon"}}}, ["channels.Ops.kind"]),
        ({"channels": {"Ops": {"for_all": True, "groups": ["sample"]}}}, ["channels.Ops.for_all"]),
        (
            {"channels": {"Ops": {"kind": "mail", "settings": {"url": "x"}}}},
            ["channels.Ops.settings.url"],
        ),
        ({"jobs": {f"sample/{number}": {} for number in range(JOBS_MAX + 1)}}, ["jobs"]),
    ],
)
def test_errors_name_their_places_all_at_once(sections: Mapping[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_document(*(sections.get(name, {}) for name in ("groups", "jobs", "channels")))
    assert [each.field for each in raised.value.errors] == fields


def test_a_route_may_be_written_at_the_job_or_at_the_channel() -> None:
    jobs = {"sample/a": {"alarm_channels": ["Ops"]}, "sample/b": {"alarm_channels": []}, "sample/c": {}}
    document = read_document({}, jobs, {"Ops": {"jobs": ["sample/b", "sample/c"]}, "Dev": {}})
    assert document.channels["Ops"]["jobs"] == ["sample/a", "sample/b", "sample/c"]
    assert "jobs" not in document.channels["Dev"]
    assert document.jobs["sample/b"]["alarm_channels"] == ["Ops"]
    assert "alarm_channels" not in document.jobs["sample/c"]
