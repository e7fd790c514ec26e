"""Rules of groups and channels in a plan: it refuses what the apply would refuse, at the place."""

from typing import Any

import pytest

from app.domain.code.document import place
from app.errors import InvalidInput
from tests.services.code.steps import CLOSE, apply, plan

pytestmark = pytest.mark.usefixtures("database")

OPS: dict[str, Any] = {"kind": "mail", "settings": {"addresses": "ops@example.com"}}


def refusals(document: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        plan(document)
    return [(each.field, str(each.message)) for each in refused.value.errors]


@pytest.mark.parametrize(
    ("app_name", "problem"),
    [
        ("", "Enter an AppName"),
        ("ab", "4 to 64 characters"),
        ("a" * 65, "at most 64 characters"),
        ("ab<d", "contains <"),
        ("abcd\0", "cannot be stored"),
    ],
)
def test_the_name_of_a_new_group_is_checked(app_name: str, problem: str) -> None:
    (where, message), *_ = refusals({"groups": {app_name: {}}})
    assert where == f"groups.{app_name}"
    assert problem in message


@pytest.mark.parametrize("title", ["", "<b>", "a\0", "a" * 65])
@pytest.mark.parametrize("app_name", ["sample", "other"])
def test_the_title_of_a_group_is_checked(app_name: str, title: str) -> None:
    apply({"groups": {"sample": {}}})
    assert [where for where, _ in refusals({"groups": {app_name: {"title": title}}})] == [
        f"groups.{app_name}.title"
    ]


def test_the_errors_of_a_group_are_named_together() -> None:
    members = {"title": "", "address_type": "manual", "addresses": ["http://192.0.2.1:9999/"]}
    found = refusals({"groups": {"ab": members}})
    assert [where for where, _ in found] == ["groups.ab", "groups.ab.title", "groups.ab.addresses"]


@pytest.mark.parametrize(
    ("name", "members", "places"),
    [
        ("", OPS, [""]),
        ("x" * 200, OPS, [""]),
        ("ok\0", OPS, [""]),
        ("Dev", {**OPS, "settings": {"addresses": "bad"}}, ["settings.addresses"]),
        ("Dev", {**OPS, "for_all": False}, ["groups"]),
        ("Ops", {"settings": {"addresses": "bad"}}, ["settings.addresses"]),
        ("Ops", {"settings": {"addresses": ""}, "groups": []}, ["settings.addresses", "groups"]),
    ],
)
def test_a_channel_is_checked(name: str, members: dict[str, Any], places: list[str]) -> None:
    apply({"groups": {"sample": {}}, "channels": {"Ops": {**OPS, "groups": ["sample"]}}})
    found = refusals({"channels": {name: members}})
    assert [where for where, _ in found] == [place("channels", name, each) for each in places]


def test_a_channel_may_get_its_scopes_from_jobs() -> None:
    apply({"groups": {"sample": {}}, "channels": {"Ops": {**OPS, "groups": ["sample"]}}})
    routed = {"sample/close": {**CLOSE, "alarm_channels": ["Ops"]}}
    assert not plan({"jobs": routed, "channels": {"Ops": {"groups": []}}}).is_empty


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Night", "There is no alarm channel Night"),
        ("Ops", "The alarm channel Ops is for all jobs already"),
    ],
)
def test_an_alarm_channel_is_named_as_the_file_names_it(name: str, problem: str) -> None:
    apply({"groups": {"sample": {}}, "channels": {"Ops": OPS}})
    refused = refusals({"jobs": {"sample/close": {**CLOSE, "alarm_channels": [name]}}})
    assert refused == [("jobs.sample/close.alarm_channels", problem)]


@pytest.mark.parametrize(
    ("name", "members", "where"),
    [
        ("Night", {"settings": OPS["settings"]}, "kind"),
        ("Ops", {"for_all": False, "jobs": ["close"]}, "jobs"),
    ],
)
def test_an_error_of_a_channel_is_none_of_the_jobs_that_name_it(
    name: str, members: dict[str, Any], where: str
) -> None:
    apply({"groups": {"sample": {}}, "channels": {"Ops": OPS}})
    routed = {"sample/close": {**CLOSE, "alarm_channels": [name]}}
    found = refusals({"jobs": routed, "channels": {name: members}})
    assert [each for each, _ in found] == [place("channels", name, where)]


def test_the_errors_of_all_channels_are_named() -> None:
    found = refusals({"channels": {"": OPS, "Dev": {**OPS, "settings": {}}}})
    assert [where for where, _ in found] == ["channels.", "channels.Dev.settings.addresses"]
