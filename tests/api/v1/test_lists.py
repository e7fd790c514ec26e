"""Lists that are read in parts: each item once, in the order of the whole list."""

from typing import Any

import pytest

from tests.support.api_v1 import Api
from tests.support.factories import FIRST, SECOND, THIRD, make_group, make_job

pytestmark = pytest.mark.usefixtures("database")


def add_channels(api: Api) -> None:
    for name in ("b", "a", "c"):
        settings = {"url": "http://127.0.0.1:9/hook"}
        api.post("/channels", {"name": name, "kind": "webhook", "settings": settings})


def add_drains(api: Api) -> None:
    addresses = [FIRST, SECOND, THIRD]
    group_id = make_group(address_type=1, address_list=",".join(addresses)).id
    for address in addresses:
        api.post("/drains", {"group_id": group_id, "address": address})


def add_applies(api: Api) -> None:
    for title in ("b", "a", "c"):
        document = {"format": 1, "groups": {"sample": {"title": title}}}
        api.post("/code/apply", {"document": document, "source": "infra@1a2b3c"})


@pytest.mark.parametrize(
    ("path", "add"),
    [("/channels", add_channels), ("/drains", add_drains), ("/code/applies", add_applies)],
)
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_list_in_parts_is_the_whole_list(api: Api, path: str, add: Any, limit: int) -> None:
    add(api)
    whole = api.get(path).json
    assert (len(whole["items"]), whole["next_cursor"]) == (3, None)
    parts, cursor = list[Any](), ""
    while cursor is not None:
        part = api.get(f"{path}?limit={limit}&cursor={cursor}").json
        parts.append(part["items"])
        cursor = part["next_cursor"]
    assert [item for part in parts for item in part] == whole["items"]
    assert [len(part) for part in parts] == {1: [1, 1, 1], 2: [2, 1], 3: [3]}[limit]


def test_a_cursor_of_another_list_is_refused(api: Api) -> None:
    add_channels(api)
    add_applies(api)
    cursor = api.get("/channels?limit=1").json["next_cursor"]
    first, second = (make_job(), make_job())
    versions = f"/jobs/{first.id}/versions"
    for owner in ("ann", "bob"):
        api.patch(f"/jobs/{first.id}", {"owner": owner})
    of_versions = api.get(f"{versions}?limit=1").json["next_cursor"]
    assert api.get(f"{versions}?limit=1&cursor={of_versions}").status_code == 200
    for path in ("/code/applies", "/jobs", f"/jobs/{second.id}/versions"):
        for other in (cursor, of_versions, of_versions[6:]):
            answer = api.get(f"{path}?cursor={other}")
            assert (answer.status_code, answer.json["errors"][0]["field"]) == (422, "cursor"), path
