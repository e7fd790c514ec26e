"""Commands of jobs as code, over the API of this process: plan, apply, drift, export, undo."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.api.v1.access import LOCAL_ACTOR
from app.commands import main
from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.models.code import Apply
from app.models.job import Job
from app.settings.config import Config
from executor_client.api.wsgi import WsgiTransport
from tests.support.api_v1 import app_of
from tests.support.factories import all_rows, make_group, only_row

pytestmark = pytest.mark.usefixtures("database")

Run = Callable[..., Result]
CLOSE = """\
group: sample
groups:
  sample: {title: Sample, address_type: automatic}
jobs:
  close:
    description: Close the books
    owner: ann
    handler: closeHandler
    schedule_type: CRON
    schedule: 0 0 2 * * ?
    time_zone: UTC
    enabled: true
"""


@pytest.fixture
def run(config: Config, monkeypatch: pytest.MonkeyPatch) -> Run:
    app = app_of(config)
    actor = replace(system_actor("ann"), via="command line")
    monkeypatch.setattr(
        main.duetime,
        "open_local",
        lambda: WsgiTransport(app, environ={LOCAL_ACTOR: actor}, address="this host"),
    )
    return lambda *arguments: CliRunner().invoke(main.duetime, [*map(str, arguments), "--local"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.yaml").write_text(CLOSE)
    return tmp_path


def change(folder: Path, old: str, new: str) -> None:
    path = folder / "jobs.yaml"
    path.write_text(path.read_text().replace(old, new))


def output(ended: Result) -> list[str]:
    assert ended.exit_code == 0, ended.output
    return ended.stdout.splitlines()


def test_from_a_plan_to_its_undoing(run: Run, folder: Path) -> None:
    make_group(app_name="other-app")
    planned = output(run("plan", folder))
    assert planned[:2] == ["+ group sample", "    title: Sample"]
    assert "+ job sample/close" in planned
    assert "    schedule: 0 0 2 * * ?" in planned
    [times] = [line for line in planned if line.startswith("    runs then: ")]
    assert times.count(" 02:00:00 UTC") == 3
    assert planned[-1] == "Plan: 2 to create, 0 unchanged."
    applied = output(run("apply", folder, "--yes", "--source", "infra@1a2b3c"))
    assert applied[-1] == "Applied. To take it back: duetime undo 1"
    assert output(run("plan", folder)) == ["Nothing to do: 2 unchanged."]
    assert output(run("apply", folder, "--yes")) == ["Nothing to do: 2 unchanged."]
    assert only_row(Apply).source == "infra@1a2b3c"
    listed = output(run("undo"))
    assert listed[1].split()[:1] == ["1"]
    assert output(run("undo", 1, "--yes")) == ["Apply 1 is undone."]
    assert all_rows(Job) == []


def test_an_apply_that_changes_nothing_holds_up_no_schedule(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("apply", folder, "--yes")
    locked: list[object] = []
    monkeypatch.setattr("app.services.code.apply.locks.take_schedule_lock", locked.append)
    assert output(run("apply", folder, "--yes")) == ["Nothing to do: 2 unchanged."]
    applied = json.loads(run("apply", folder, "--yes", "-o", "json").stdout)
    assert (applied["apply_id"], applied["plan"]["summary"]["unchanged"], locked) == (None, 2, [])


def test_a_changed_schedule_says_what_will_run_when(run: Run, folder: Path) -> None:
    run("apply", folder, "--yes")
    change(folder, "0 0 2 * * ?", "0 30 4 * * ?")
    planned = output(run("plan", folder))
    assert planned[0] == f"~ job sample/close ({only_row(Job).id})"
    assert planned[1] == "    schedule: 0 0 2 * * ? -> 0 30 4 * * ?"
    assert planned[2].startswith("    runs until now: ")
    assert "04:30:00 UTC" in planned[3]
    assert planned[-1] == "Plan: 1 to change, 1 unchanged."


def test_exit_codes_are_for_pipelines(run: Run, folder: Path) -> None:
    assert run("plan", folder).exit_code == 0
    assert run("plan", folder, "--exit-code").exit_code == 1
    run("apply", folder, "--yes")
    assert run("plan", folder, "--exit-code").exit_code == 0
    assert run("drift").exit_code == 0
    with session_scope() as session:
        for job in session.query(Job):
            job.schedule_conf = "0 0 5 * * ?"
    ended = run("drift")
    assert ended.exit_code == 1
    assert "    schedule: 0 0 2 * * ? in the code, now 0 0 5 * * ?" in ended.stdout.splitlines()
    assert "(changed in the console)" in run("plan", folder).stdout


def test_without_a_terminal_an_apply_has_to_be_confirmed_before(run: Run, folder: Path) -> None:
    ended = run("apply", folder)
    assert (ended.exit_code, ended.stderr) == (
        2,
        "Error: nothing was changed: add --yes to continue without confirmation\n",
    )
    assert all_rows(Job) == []


def test_errors_of_the_console_name_file_line_and_column(run: Run, folder: Path) -> None:
    change(folder, "0 0 2 * * ?", "0 0 25 * * ?")
    change(folder, "    owner: ann\n", "    owner: ann\n    timeout_s: soon\n    children: [gone]\n")
    ended = run("plan", folder)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"Error: {folder}/jobs.yaml:8:5: jobs.sample/close.timeout_s: ")
    change(folder, "    timeout_s: soon\n", "")
    lines = run("plan", folder).stderr.splitlines()
    assert [line.partition(": jobs.")[0] for line in lines] == [
        f"Error: {folder}/jobs.yaml:{place}" for place in ("8:5", "11:5")
    ]


def test_only_named_objects_are_deleted(run: Run, folder: Path) -> None:
    run("apply", folder, "--yes")
    change(folder, "  close:", "  other:")
    change(folder, "Close the books", "Other")
    planned = output(run("plan", folder))
    assert "sample/close is managed but not in the files; to delete it: --prune sample/close" in planned
    assert output(run("apply", folder, "--yes", "--prune", "sample/close"))[-2].startswith(
        "Plan: 1 to create, 1 to delete"
    )
    assert only_row(Job).job_desc == "Other"


def test_an_export_is_applied_as_it_is(run: Run, folder: Path, tmp_path: Path) -> None:
    run("apply", folder, "--yes")
    target = tmp_path / "exported"
    ended = run("export", target)
    assert (ended.exit_code, ended.stderr) == (0, f"1 job written to 1 file below {target}\n")
    assert output(run("plan", target)) == ["Nothing to do: 2 unchanged."]
    assert "exists: choose another folder" in run("export", target).stderr
    assert run("export", target, "--force").exit_code == 0
    (tmp_path / "file").touch()
    refused = run("export", tmp_path / "file" / "below")
    assert refused.exit_code == 1
    assert "cannot be written: Not a directory" in refused.stderr
    assert "close:" in run("export").stdout
    assert json.loads(run("export", "-o", "json").stdout)["jobs"]["sample/close"]["owner"] == "ann"


def test_placeholders_are_planned_applied_and_exported_as_they_are(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    param = "${time-1d:yyyy-MM-dd} ${parent.result.rows[0].id:-none} $${var.A} $${HOME}"
    change(folder, "    owner: ann\n", f"    owner: ann\n    param: {param}\n")
    run("apply", folder, "--yes")
    assert only_row(Job).executor_param == param.replace("$${", "${")
    target = tmp_path / "exported"
    assert run("export", target).exit_code == 0
    assert param.replace("$${var.A}", "${var.A}") in (target / "sample.yaml").read_text()
    assert output(run("plan", target)) == ["Nothing to do: 2 unchanged."]


def test_programs_get_documents(run: Run, folder: Path) -> None:
    planned = json.loads(run("plan", folder, "-o", "json").stdout)
    applied = json.loads(run("apply", folder, "--yes", "-o", "json").stdout)
    assert applied["plan"]["plan_hash"] == planned["plan_hash"]
    assert applied["apply_id"] == 1
    assert run("drift", "-o", "json").stdout == "[]\n"
