"""Health and readiness: for monitors, without a login and under any host name."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from flask import Flask
from sqlalchemy import select, text

from app.clock import now_ms
from app.database.engine import bind_engine, session_scope
from app.models.node import SCAN_MAX_MS, Node
from app.settings.config import Config
from tests.pipeline.steps import claim_fires
from tests.support.console import CONTEXT
from tests.support.console_operations import start_workers
from tests.support.eventually import eventually
from tests.support.factories import make_fire, make_job
from tests.support.silent_database import silent_database


@pytest.mark.parametrize("path", ["/health", "/actuator/health", "/ready"])
def test_monitors_need_no_login_and_no_host_name(app: Flask, path: str) -> None:
    start_workers(scanned_ms=now_ms())
    for prefix in (CONTEXT, ""):
        response = app.test_client().get(prefix + path, headers={"Host": "load-balancer.example"})
        assert response.status_code == 200
        assert response.get_json() == {"status": "READY" if path == "/ready" else "UP"}


def test_our_server_has_a_thread_for_each_path_of_monitors(app: Flask) -> None:
    """They are answered while all other requests wait for a database that hangs."""
    paths = ("/health", "/actuator/health", "/ready", "/metrics")
    reserved = app.extensions["xxl_job_reserved"]
    assert sorted(map(sorted, reserved)) == sorted([path, CONTEXT + path] for path in paths)


def test_not_ready_until_a_scheduler_has_scanned(app: Flask) -> None:
    response = app.test_client().get("/ready")
    assert (response.status_code, response.get_json()["part"]) == (503, "scheduler")
    assert response.get_json()["since"] is None


def test_not_ready_if_no_scheduler_scans_any_more(app: Flask) -> None:
    last_ms = now_ms() - SCAN_MAX_MS - 5_000
    start_workers(scanned_ms=last_ms)
    response = app.test_client().get("/ready")
    assert response.status_code == 503
    assert response.get_json() == {
        "status": "NOT_READY",
        "part": "scheduler",
        "problem": "no scheduler has scanned for 15 s",
        "since": datetime.fromtimestamp(last_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def test_not_ready_while_a_run_is_not_claimed_although_nothing_explains_it(app: Flask) -> None:
    start_workers(scanned_ms=now_ms())
    due_ms = now_ms() - 40_000
    fire = make_fire(make_job(), due_time=due_ms)
    with session_scope() as session:
        session.scalars(select(Node)).one().heartbeat_ms = now_ms()
    response = app.test_client().get("/ready")
    assert (response.status_code, response.get_json()["part"]) == (503, "runs")
    since = datetime.fromtimestamp(due_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert response.get_json()["since"] == since
    claim_fires([fire], now_ms=now_ms())
    assert app.test_client().get("/ready").status_code == 200


def test_a_scan_by_a_clock_far_ahead_does_not_count(app: Flask) -> None:
    start_workers(scanned_ms=now_ms() + 3_600_000)
    assert app.test_client().get("/ready").status_code == 503


def test_an_older_schema_is_named_and_dated(app: Flask) -> None:
    with session_scope() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0006_console'"))
    client = app.test_client()
    first, second = client.get("/ready"), client.get("/ready")
    assert (first.status_code, first.get_json()["part"]) == (503, "schema")
    assert "has the schema 0006_console, but 00" in first.get_json()["problem"]
    assert first.get_json()["since"] == second.get_json()["since"] is not None


def test_ready_while_another_node_upgrades_the_schema(app: Flask) -> None:
    start_workers(scanned_ms=now_ms())
    client = app.test_client()
    assert client.get("/ready").status_code == 200
    with session_scope() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999_next'"))
    assert client.get("/ready").status_code == 200


def test_without_a_database_the_process_is_up_and_not_ready(app: Flask, config: Config) -> None:
    bind_engine(replace(config, database_url="sqlite:////nowhere/at/all.db"))
    client = app.test_client()
    answer = client.get("/ready").get_json()
    assert (answer["part"], answer["problem"]) == ("database", "the database does not answer")
    assert answer["since"] == client.get("/ready").get_json()["since"] is not None
    assert client.get("/health").status_code == 200
    assert client.get("/actuator/health").status_code == 503


def test_a_database_that_hangs_is_down(app: Flask, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.operations.bounded_reads.ANSWER_S", 0.01)
    client = app.test_client()
    with silent_database() as silent:
        bind_engine(replace(config, database_url=silent.url))
        assert client.get("/ready").get_json()["part"] == "database"
        assert client.get("/actuator/health").get_json() == {"status": "DOWN"}
        assert eventually(silent.count_connections) == 1, "the first has not ended"
