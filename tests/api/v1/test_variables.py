"""Variables and secrets in the API."""

from collections.abc import Callable

from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.store.variables import values
from tests.support.api_v1 import Api
from tests.support.factories import all_rows, make_group

ApiOf = Callable[..., Api]
SECRET, NEW_SECRET = "the first secret", "the second secret"
EDITOR = (Right.VIEW, Right.EDIT)


def test_variables_are_added_listed_changed_and_deleted(api_of: ApiOf) -> None:
    group = make_group()
    editor = api_of(*EDITOR, group_ids=[group.id])
    made = editor.post("/variables", {"group_id": group.id, "name": "REGION", "value": "eu-1"})
    path = made.headers["Location"]
    assert (made.status_code, path) == (201, f"/variables/{made.json['id']}")
    expected = {"name": "REGION", "kind": "variable", "group_id": group.id, "value": "eu-1", "allowed": []}
    assert {name: made.json[name] for name in expected} == expected
    first = editor.get(path)
    assert first.json == made.json
    etag = {"If-Match": first.headers["ETag"]}
    changed = editor.patch(path, {"value": ""}, headers=etag)
    assert (changed.status_code, changed.json["value"], changed.json["version"]) == (200, "", 2)
    assert editor.patch(path, {"value": "late"}, headers=etag).status_code == 412
    assert editor.delete(path, headers=etag).status_code == 412
    again = editor.post("/variables", {"group_id": group.id, "name": "REGION", "value": "x"})
    assert (again.status_code, again.json["errors"][0]["field"]) == (422, "name")
    assert [item["id"] for item in editor.get("/variables?name=REGION").json["items"]] == [made.json["id"]]
    assert editor.get("/variables?kind=secret").json["items"] == []
    assert editor.get("/variables?group_id=0").json["items"] == []
    assert editor.delete(path).status_code == 204
    assert editor.get(path).status_code == 404


def test_a_secret_needs_the_right_glue_and_is_never_returned(api_of: ApiOf) -> None:
    group = make_group()
    body = {"group_id": group.id, "name": "KEY", "secret": SECRET}
    editor = api_of(*EDITOR, group_ids=[group.id])
    assert editor.post("/variables", body).status_code == 403
    coder = api_of(*EDITOR, Right.GLUE, group_ids=[group.id], name="coder")
    made = coder.post("/variables", body)
    path = made.headers["Location"]
    assert (made.status_code, made.json["kind"], made.json["value"]) == (201, "secret", None)
    etag = coder.get(path).headers["ETag"]
    assert editor.patch(path, {"secret": NEW_SECRET}).status_code == 403
    changed = coder.patch(path, {"secret": NEW_SECRET}, headers={"If-Match": etag})
    assert (changed.status_code, changed.json["version"]) == (200, 2)
    refused = [
        coder.patch(path, {"value": NEW_SECRET}),
        coder.patch(path, {"secret": "s3cret!"}),
        coder.post("/variables", {**body, "name": "1"}),
        coder.post("/variables", {**body, "name": "LONG", "secret": SECRET * 1_000}),
        coder.post("/variables", {**body, "value": SECRET}),
        coder.post("/variables", {**body, "surplus": SECRET}),
    ]
    assert [answer.status_code for answer in refused] == [422] * 6
    answers = [made, changed, coder.get(path), coder.get("/variables"), *refused]
    audited = "".join(entry.changes or "" for entry in all_rows(AuditEntry))
    for text in (SECRET, NEW_SECRET, "s3cret!"):
        assert not any(text in answer.text for answer in answers)
        assert text not in audited
    with read_scope() as session:
        ((_key, sealed),) = values.find_sealed(session, ["KEY"], [group.id]).items()
    assert values.open_sealed(sealed) == NEW_SECRET


def test_a_secret_of_the_installation_names_its_groups(api_of: ApiOf) -> None:
    group, other = make_group(), make_group()
    admin, reader = api_of(admin=True, name="admin"), api_of(*EDITOR, group_ids=[group.id])
    body = {"name": "KEY", "secret": SECRET, "allowed": [group.id, other.id]}
    assert reader.post("/variables", body).status_code == 403
    made = admin.post("/variables", body).json
    assert (made["group_id"], made["allowed"]) == (None, [group.id, other.id])
    path = f"/variables/{made['id']}"
    assert reader.get(path).json["allowed"] == [group.id], "only what it may see"
    assert reader.patch(path, {"allowed": []}).status_code == 403
    assert admin.patch(path, {"allowed": [other.id]}).json["allowed"] == [other.id]
    assert reader.get(path).status_code == 404
    assert reader.get("/variables").json["items"] == []
    assert admin.patch(path, {"allowed": [999]}).status_code == 422
