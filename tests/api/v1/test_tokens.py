"""Service tokens over the API: created, listed, revoked; and nothing of a secret is kept."""

from typing import Any

import pytest
from sqlalchemy import select, text

from app.clock import now_ms
from app.database.connections import sqlite
from app.database.engine import read_scope, session_scope
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import Actor
from app.models.api_token import ApiToken
from app.services.accounts import api_tokens
from tests.support.api_v1 import Api
from tests.support.databases import write_lock
from tests.support.factories import make_group

BODY = {"name": "ci", "rights": ["operate"]}


def test_a_created_token_works_until_it_is_revoked(api: Api) -> None:
    group = make_group()
    answer = api.post("/tokens", {**BODY, "group_ids": [group.id], "expires_at": "2100-01-31T08:00:00Z"})
    assert answer.status_code == 201
    made = answer.json
    assert answer.headers["Location"].endswith(f"/tokens/{made['id']}")
    assert made["rights"] == ["view", "operate"]
    used = api.with_token(made["token"]).get("/me").json
    assert used["groups"] == [
        {"group_id": group.id, "app_name": group.app_name, "rights": ["view", "operate"]}
    ]
    shown = api.get(f"/tokens/{made['id']}").json
    assert "token" not in shown
    assert (shown["group_ids"], shown["expires_at"]) == ([group.id], "2100-01-31T08:00:00.000Z")
    assert shown["last_used_at"] is not None
    assert api.delete(f"/tokens/{made['id']}").status_code == 204
    assert api.with_token(made["token"]).get("/me").status_code == 401
    assert api.get(f"/tokens/{made['id']}").status_code == 404


def test_service_tokens_are_listed_newest_first_and_part_by_part(api: Api) -> None:
    for name in ("one", "two"):
        api.post("/tokens", {**BODY, "name": name})
    first = api.get("/tokens?limit=2").json
    second = api.get(f"/tokens?limit=2&cursor={first['next_cursor']}").json
    assert [each["name"] for each in (*first["items"], *second["items"])] == ["two", "one", "admin"]
    assert second["next_cursor"] is None


def test_personal_tokens_are_not_seen(api: Api) -> None:
    with session_scope() as session:
        draft = api_tokens.TokenDraft("mine", Grant(frozenset(), admin=True))
        owner = Actor(7, "ada", is_admin=True)
        made = api_tokens.create_token(session, draft, actor=owner, now_ms=now_ms())
    assert "mine" not in api.get("/tokens").text
    assert api.get(f"/tokens/{made.id}").status_code == 404
    assert api.delete(f"/tokens/{made.id}").status_code == 404


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "admin"}, "name"),
        ({"rights": []}, "rights"),
        ({"rights": ["root"]}, "rights.0"),
        ({"group_ids": [987]}, "group_ids"),
        ({"group_ids": []}, "group_ids"),
        ({"rights": ["admin"], "group_ids": [1]}, "group_ids"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ],
)
def test_an_invalid_value_is_named(api: Api, changes: dict[str, Any], field: str) -> None:
    answer = api.post("/tokens", {**BODY, **changes})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json["errors"]] == [field]


def test_a_dry_run_creates_no_token(api: Api) -> None:
    answer = api.post("/tokens?dry_run=true", BODY)
    assert answer.status_code == 201
    assert api.with_token(answer.json["token"]).get("/me").status_code == 401


def test_no_token_is_kept_for_an_idempotency_key(api: Api) -> None:
    answer = api.post("/tokens", BODY, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json["errors"][0]["field"]) == (422, "Idempotency-Key")
    made = api.post("/tokens", BODY).json["token"]
    with read_scope() as session:
        assert session.scalar(text("SELECT COUNT(*) FROM xxl_job_idempotency")) == 0
        rows = session.scalars(select(ApiToken)).all()
    assert made not in str([vars(row) for row in rows])


@pytest.mark.databases("sqlite")  # servers have no lock of the whole database
def test_what_only_reads_goes_on_where_the_last_use_cannot_be_written(
    api: Api, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    with write_lock(database):
        assert api.get("/jobs").status_code == 200
        assert api.post("/tokens", BODY).status_code == 503
