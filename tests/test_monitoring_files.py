"""Files of deploy/monitoring: the alert rules do what they say, and rules, dashboard and docs agree."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from app.runtime import metrics

ROOT = Path(__file__).resolve().parent.parent
MONITORING = ROOT / "deploy" / "monitoring"
DOCS = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
EXPOSITION = (ROOT / "app" / "services" / "operations" / "exposition.py").read_text(encoding="utf-8")
#: what the console shows: counted by processes, or read from the database
SHOWN = set(metrics.METRICS) | set(re.findall(r'"(xxl_job_\w+)"', EXPOSITION))
#: a metric in an expression; histograms by the name without these endings
NAME = re.compile(r"xxl_job_[a-z_]+?(?=(?:_bucket|_sum|_count)?\b)")


def alert_names() -> list[str]:
    return re.findall(r"- alert: (\w+)", (MONITORING / "alerts.yml").read_text(encoding="utf-8"))


@pytest.mark.prometheus
@pytest.mark.parametrize(
    "arguments", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")]
)
def test_the_rules_are_valid_and_fire_when_they_should(arguments: tuple[str, ...]) -> None:
    ended = subprocess.run(["promtool", *arguments], cwd=MONITORING, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_rule_is_tested_and_documented() -> None:
    tested = (MONITORING / "alerts_test.yml").read_text(encoding="utf-8")
    assert len(alert_names()) > 10
    for name in alert_names():
        assert re.search(rf"alertname: {name}\n\s+exp_alerts:", tested), name
        assert f"| `{name}` |" in DOCS, name


@pytest.mark.parametrize("file", ["alerts.yml", "grafana-dashboard.json"])
def test_rules_and_dashboard_name_metrics_that_exist(file: str) -> None:
    text = (MONITORING / file).read_text(encoding="utf-8")
    used = set(NAME.findall(text))
    assert used - SHOWN == set()
    assert len(used) > 8


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    assert set(re.findall(r"`(xxl_job_\w+)", DOCS)) == SHOWN


def test_the_panels_of_the_dashboard_have_ids_titles_and_queries() -> None:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"]
        assert all(target["expr"] for target in panel["targets"])
