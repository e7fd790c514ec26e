"""An installation as an operator watches it: systemd, /ready, and a real Prometheus that scrapes it."""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import ROOT, Program, free_port, wait_for
from tests.support.eventually import eventually
from tests.support.fake_systemd import FakeSystemd

METRICS_TOKEN = "metrics-token-0123456789"
MONITORING = ROOT / "deploy" / "monitoring"
#: after the workers were killed
NOT_READY_S = 15
APPNAME = "recorder"


class Prometheus:
    """A running Prometheus that scrapes one console every second."""

    def __init__(self, cluster: Cluster) -> None:
        self._port = free_port()
        folder = cluster.folder / "prometheus"
        folder.mkdir()
        (folder / "token").write_text(METRICS_TOKEN)
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(MONITORING / "alerts.yml")],
            "scrape_configs": [
                {
                    "job_name": "xxl-job",
                    "authorization": {"credentials_file": str(folder / "token")},
                    "static_configs": [{"targets": [f"127.0.0.1:{cluster.port}"]}],
                }
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        command = [
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
        ]
        command += [f"--web.listen-address=127.0.0.1:{self._port}", "--log.level=warn"]
        self.program: Program = cluster.programs.start("prometheus", command, cluster.environ)

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of the API; None while it does not answer."""
        try:
            answer = requests.get(
                f"http://127.0.0.1:{self._port}/api/v1/{path}", params=parameters, timeout=5
            )
        except requests.ConnectionError:
            return None
        assert answer.status_code in (200, 503), answer.text
        return answer.json()["data"] if answer.status_code == 200 else None

    def value(self, expression: str) -> float | None:
        """Return the first value of an expression, None if it has none."""
        found = (self.get("query", query=expression) or {}).get("result")
        return float(found[0]["value"][1]) if found else None

    def await_value(self, expression: str) -> float:
        wait_for(self.program, lambda: self.value(expression), f"{expression} is not 0")
        return self.value(expression) or 0


def readiness(cluster: Cluster) -> tuple[int, dict[str, Any]]:
    answer = requests.get(f"{cluster.console.address}/ready", timeout=10)
    return answer.status_code, answer.json()


def dashboard_queries() -> list[str]:
    """Return the expressions of the dashboard with its variables filled in."""
    dashboard = json.loads(Path(MONITORING / "grafana-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    values = {"$job": "xxl-job", "$group": ".*", "$__rate_interval": "1m"}
    return [re.sub(r"\$\w+", lambda found: values[found[0]], text) for text in expressions]


@pytest.mark.prometheus
@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
@pytest.mark.databases("sqlite")
def test_systemd_ready_and_prometheus_see_the_installation_run_and_die(cluster: Cluster) -> None:
    cluster.settings["XXL_JOB_METRICS_TOKEN"] = METRICS_TOKEN
    port = free_port()
    with FakeSystemd(watchdog_s=2) as of_console, FakeSystemd(watchdog_s=2) as of_workers:
        console = cluster.start("console", "wsgi.py", **of_console.environ)
        workers = cluster.start("workers", "-m", "workers", **of_workers.environ)
        prometheus = Prometheus(cluster)
        cluster.start_recorder(port=port)
        wait_for(console, lambda: "READY=1" in of_console.states, "it is ready")
        assert cluster.console.answers()
        wait_for(workers, lambda: "READY=1" in of_workers.states, "it is ready")
        assert readiness(cluster) == (200, {"status": "READY"})
        cluster.console.login()
        address = f"http://127.0.0.1:{port}/"
        group = cluster.console.add_group(APPNAME, addressType=1, addressList=address)
        job = cluster.console.add_job(group, scheduleType="FIX_RATE", scheduleConf="1")
        cluster.console.start(job)
        see_numbers(prometheus)
        for program, systemd in ((console, of_console), (workers, of_workers)):
            wait_for(program, lambda states=systemd: "WATCHDOG=1" in states.states, "it is alive")
        workers.kill()
        killed_at = time.monotonic()
        answer = eventually(lambda: (found := readiness(cluster))[0] == 503 and found[1], NOT_READY_S)
        assert answer
        assert answer["part"] == "scheduler"
        assert time.monotonic() - killed_at < NOT_READY_S
        assert cluster.console.answers()
        assert console.end() == 0
        eventually(lambda: of_console.states[-1] == "STOPPING=1", 5)


def see_numbers(prometheus: Prometheus) -> None:
    """Check what Prometheus shows while a job runs every second."""
    prometheus.await_value(f'xxl_job_runs_ended_total{{group="{APPNAME}", outcome="success"}}')
    assert prometheus.value('up{job="xxl-job"}') == 1
    sent = prometheus.await_value(f'xxl_job_fires_sent_total{{group="{APPNAME}", outcome="accepted"}}')
    assert sent <= prometheus.await_value(f'xxl_job_fires_due_total{{group="{APPNAME}"}}') + 1
    for histogram in ("fire_lag", "send_duration", "claim_duration", "run_duration", "callback_duration"):
        prometheus.await_value(f"xxl_job_{histogram}_seconds_count")
    prometheus.await_value('xxl_job_database_statement_duration_seconds_count{process="monitor"}')
    prometheus.await_value('xxl_job_callbacks_total{outcome="stored"}')
    prometheus.await_value('xxl_job_nodes_alive{kind="workers"}')
    prometheus.await_value('process_resident_memory_bytes{process="scheduler"}')
    assert (prometheus.value("xxl_job_last_scan_age_seconds") or 0) < 10
    groups = prometheus.get("rules")["groups"]
    assert {rule["health"] for rule in groups[0]["rules"]} == {"ok"}
    for query in dashboard_queries():
        assert prometheus.get("query", query=query) is not None, query
