"""Metrics: who may read them, and what they show."""

import json
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from flask import Flask
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import delete

from app.clock import now_ms
from app.console.operations.metrics import OFF
from app.database.engine import bind_engine, session_scope
from app.database.faults import FaultLog
from app.models.archive import ArchiveDay, LogArchive
from app.models.group import Group
from app.models.node import SCAN_MAX_MS
from app.models.promise import Incident, JobPromise
from app.models.registry import Registration
from app.runtime import metrics
from app.services.backups.last_backup import LastBackup, note_last
from app.services.operations.exposition import GROUPS_MAX
from app.settings.config import Config
from tests.services.backfills.backfill_steps import change, draft, minutely, start
from tests.support.console import Console
from tests.support.console_operations import start_workers
from tests.support.factories import make_fire, make_group, make_job, save
from tests.support.silent_database import silent_database
from tests.support.statements import statements

TOKEN = "metrics-token-0123456789"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def settings(settings: Config) -> Config:
    return replace(settings, metrics_tokens=("new-metrics-token-01234", TOKEN))


def scrape(app: Flask) -> dict[str, dict[tuple[str, ...], float]]:
    """Return metric -> values by label values, in the order of the names of the labels."""
    response = app.test_client().get("/metrics", headers=BEARER)
    assert response.status_code == 200, response.text
    assert response.content_type.startswith("text/plain; version=0.0.4")
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            key = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[key] = sample.value
    return found


def write_workers(config: Config, values: Mapping[str, object], pid: int = 1) -> None:
    folder = config.home / metrics.FOLDER
    folder.mkdir(exist_ok=True)
    (folder / "scheduler.json").write_text(json.dumps({"pid": pid, "metrics": values}))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (BEARER, 200),
        ({"Authorization": "bearer new-metrics-token-01234", "Host": "10.1.2.3:8080"}, 200),
        ({}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": "Bearer \u00fc"}, 401),
    ],
)
def test_a_token_is_needed_if_one_is_configured(app: Flask, headers: dict[str, str], status: int) -> None:
    response = app.test_client().get("/metrics", headers=headers)
    assert response.status_code == status
    assert status == 200 or "xxl_job_" not in response.text
    assert (response.headers.get("WWW-Authenticate") == "Bearer") is (status == 401)


class TestNetworks:
    """Networks without a token, then with one."""

    @pytest.fixture
    def settings(self, settings: Config) -> Config:
        return replace(settings, metrics_tokens=(), metrics_networks=(ip_network("10.0.0.0/8"),))

    @pytest.mark.parametrize(
        ("address", "status"), [("10.7.7.7", 200), ("::ffff:10.1.1.1", 200), ("127.0.0.1", 403), ("", 403)]
    )
    def test_only_their_addresses_may_read(self, app: Flask, address: str, status: int) -> None:
        response = app.test_client().get("/metrics", environ_base={"REMOTE_ADDR": address})
        assert response.status_code == status

    def test_with_a_token_both_are_needed(self, app: Flask, settings: Config) -> None:
        app.config["XXL_JOB"] = replace(settings, metrics_tokens=(TOKEN,))
        client, inside = app.test_client(), {"REMOTE_ADDR": "10.7.7.7"}
        assert client.get("/metrics", environ_base=inside).status_code == 401
        assert client.get("/metrics", headers=BEARER).status_code == 403
        assert client.get("/metrics", headers=BEARER, environ_base=inside).status_code == 200


def test_metrics_are_off_by_default_even_for_an_administrator(admin: Console, settings: Config) -> None:
    admin.app.config["XXL_JOB"] = replace(settings, metrics_tokens=())
    response = admin.get("/metrics", environ_base={"REMOTE_ADDR": "127.0.0.1"})
    assert (response.status_code, response.text.strip()) == (403, OFF)


def test_the_state_of_the_installation_is_shown(app: Flask) -> None:
    start_workers(scanned_ms=now_ms() - 4_000)
    job = make_job(job_group=make_group(app_name="billing", address_type=0).id)
    make_fire(job, due_time=now_ms() - 60_000)
    found = scrape(app)
    assert found["xxl_job_database_up"] == {(): 1}
    assert found["xxl_job_nodes_alive"] == {("console",): 0, ("workers",): 0}
    assert 4 <= found["xxl_job_last_scan_age_seconds"][()] < SCAN_MAX_MS / 1000
    assert found["xxl_job_jobs"] == {("on",): 0, ("off",): 1}
    assert found["xxl_job_fires_waiting"] == {(): 1}
    assert found["xxl_job_blackouts_on"] == {(): 0}
    assert found["xxl_job_fires_waiting_age_seconds"][()] >= 60
    assert found["xxl_job_instances_online"] == {("billing",): 0}
    assert found["xxl_job_alarms"] == {("waiting",): 0, ("failed",): 0}


def test_the_host_is_shown_with_its_last_backup(app: Flask, settings: Config) -> None:
    found = scrape(app)
    assert found["xxl_job_home_free_bytes"][()] > 0
    assert "xxl_job_last_backup_age_seconds" not in found
    note_last(settings, LastBackup(now_ms() - 60_000, Path("/var/backups/one.backup")))
    assert 60 <= scrape(app)["xxl_job_last_backup_age_seconds"][()] < 120


def test_counts_of_the_workers_are_shown_by_process_and_name_of_the_group(
    app: Flask, settings: Config
) -> None:
    group = make_group(app_name='bill"ing').id
    counted = [[[str(group), "accepted"], 7], [["999999", "refused"], 2]]
    lag = {"counts": [1, 0, 2, *[0] * (len(metrics.LAG) - 2)], "sum": 0.25}
    write_workers(
        settings, {"xxl_job_fires_sent_total": counted, "xxl_job_fire_lag_seconds": lag, "newer": 1}
    )
    found = scrape(app)
    sent = found["xxl_job_fires_sent_total"]
    assert sent['bill"ing', "accepted", "scheduler"] == 7
    assert sent["other", "refused", "scheduler"] == 2
    buckets = found["xxl_job_fire_lag_seconds_bucket"]
    assert [buckets[bound, "scheduler"] for bound in ("0.01", "0.025", "0.05", "+Inf")] == [1, 1, 3, 3]
    assert found["xxl_job_fire_lag_seconds_sum"]["scheduler",] == 0.25
    assert found["process_resident_memory_bytes"]["console",] > 0


def test_groups_beyond_the_limit_share_a_label(app: Flask, settings: Config) -> None:
    ids = [make_group(app_name=f"app-{number}").id for number in range(GROUPS_MAX + 2)]
    counted = [[[str(each), "misfire"], 1] for each in ids]
    write_workers(settings, {"xxl_job_fires_skipped_total": counted})
    skipped = scrape(app)["xxl_job_fires_skipped_total"]
    assert skipped["other", "scheduler", "misfire"] == 2
    assert sum(process == "scheduler" for _, process, _ in skipped) == GROUPS_MAX + 1


def test_a_counter_of_a_group_never_falls_when_another_is_deleted(app: Flask, settings: Config) -> None:
    ids = [make_group(app_name=f"app-{number}").id for number in range(GROUPS_MAX + 2)]
    write_workers(settings, {"xxl_job_fires_skipped_total": [[[str(each), "misfire"], 1] for each in ids]})
    before = scrape(app)["xxl_job_fires_skipped_total"]
    with session_scope() as session:
        session.execute(delete(Group).where(Group.id == ids[0]))
    assert scrape(app)["xxl_job_fires_skipped_total"] == before


def test_instances_of_groups_beyond_the_limit_are_added_up(app: Flask) -> None:
    for number in range(GROUPS_MAX + 2):
        make_group(app_name=f"app-{number}", address_type=0)
    for number in (0, GROUPS_MAX, GROUPS_MAX + 1):
        address = f"http://10.0.0.{number}:9999/"
        save(
            Registration(
                registry_group="EXECUTOR",
                registry_key=f"app-{number}",
                registry_value=address,
                update_time=now_ms(),
            )
        )
    online = scrape(app)["xxl_job_instances_online"]
    assert (online["app-0",], online["app-1",], online["other",]) == (1, 0, 2)
    assert len(online) == GROUPS_MAX + 1


def test_a_scrape_takes_a_bounded_number_of_statements(app: Flask) -> None:
    with statements() as executed:
        scrape(app)
    assert len([sql for sql in executed if sql.startswith("SELECT")]) <= 19


def test_active_backfills_are_counted(app: Flask) -> None:
    first, _ = (start(minutely(), draft(1, 1)) for _ in range(2))
    change(first, "pause")
    counts = {("running",): 1, ("paused",): 1, ("stopping",): 0, ("cancelling",): 0}
    assert scrape(app)["xxl_job_backfills"] == counts


def test_promises_and_incidents_are_counted(app: Flask) -> None:
    for number, (kept_ms, broken_ms) in enumerate(((0, 0), (2, 1), (2, 3), (1, 0)), 1):
        promise = {"kind": "starts_within", "definition": "{}", "since_ms": 0, "planned_until_ms": 0}
        times = {"kept_ms": kept_ms, "broken_ms": broken_ms}
        save(JobPromise(job_id=number, number=1, **promise, **times))
        incident = {"incident_key": f"i:{number}:1", "job_id": number, "group_id": 1, "kinds": "{}"}
        state = "kept_again" if number == 1 else "open"
        save(Incident(**incident, state=state, logical_ms=1, opened_ms=1))
    found = scrape(app)
    assert found["xxl_job_promises"] == {
        ("starts_within", "new"): 1,
        ("starts_within", "kept"): 2,
        ("starts_within", "broken"): 1,
    }
    assert found["xxl_job_incidents"] == {("open",): 3, ("acknowledged",): 0}


def test_the_log_archive_is_counted(app: Flask) -> None:
    now = now_ms()
    row = {"job_id": 1, "job_group": 1, "folder": "2026/07/01/1/1"}
    save(LogArchive(log_id=1, state="open", next_ms=now - 60_000, reason="disk_full", **row))
    save(LogArchive(log_id=2, state="ending", next_ms=now + 600_000, **row))
    save(LogArchive(log_id=3, state="complete", **row))
    save(ArchiveDay(job_id=1, day="2026/07/01", size=9, stored=5))
    found = scrape(app)
    assert found["xxl_job_log_archive_waiting"] == {(): 1}
    assert found["xxl_job_log_archive_waiting_age_seconds"][()] >= 60
    assert found["xxl_job_log_archive_not_taken"] == {(): 1}
    assert found["xxl_job_log_archive_stored_bytes"] == {(): 5}


def test_without_a_database_the_processes_are_shown(app: Flask, settings: Config) -> None:
    group = make_group(app_name="billing").id
    write_workers(settings, {"xxl_job_fires_due_total": [[[str(group)], 3]]})
    scrape(app)
    bind_engine(replace(settings, database_url="sqlite:////nowhere/at/all.db"))
    found = scrape(app)
    assert found["xxl_job_database_up"] == {(): 0}
    assert "xxl_job_nodes_alive" not in found
    assert found["xxl_job_fires_due_total"]["billing", "scheduler"] == 3


def test_a_database_that_hangs_is_down(
    app: Flask, settings: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.services.operations.bounded_reads.ANSWER_S", 0.01)
    monkeypatch.setattr("app.services.operations.exposition.fault_log", FaultLog())
    with silent_database() as silent:
        bind_engine(replace(settings, database_url=silent.url))
        assert scrape(app)["xxl_job_database_up"] == {(): 0}
    assert "state not read for metrics database_error=no answer within 0.01 s" in caplog.text
