"""Commands ``plan`` and ``apply`` of declared jobs, over HTTP against the API of a console."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from app.domain.access.permissions import Right
from app.models.code import Apply, CodeObject
from app.models.group import Group
from app.models.job import Job
from executor_client.__main__ import main
from executor_client.handlers.declarations import Terms
from executor_client.handlers.registry import registry
from tests.support.api_v1 import make_token
from tests.support.client import Console
from tests.support.executor_docs import TEXT, snippet
from tests.support.factories import all_rows, make_group, make_job, only_row

JOBS = """\
from datetime import timedelta

from executor_client import Executor, job


@job("closeOrders", cron="0 0/5 * * * ?", timezone="Europe/Berlin", retry=3, owner="ann")
def close_orders() -> None: ...


@job("report", every=timedelta(minutes=10), enabled=True, children=["closeOrders"])
def report() -> None: ...


@job("plain")
def plain() -> None: ...


Executor.from_env().run()
"""


PLAIN = "from executor_client import job\n\n\n@job('a')\ndef a(): ...\n"


@dataclass
class Ended:
    """End of a command."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line on standard error."""
        (line,) = self.err.splitlines()
        return line.removeprefix("executor_client: ")


Run = Callable[..., Ended]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with jobs.py, no handler and no setting."""
    for name in ("JOB_URL", "JOB_TOKEN", "JOB_TOKEN_FILE", "JOB_PROFILE", "JOB_ADMIN_ADDRESSES"):
        monkeypatch.delenv(f"XXL_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(registry, "_handlers", {})
    monkeypatch.setattr(registry, "_unbound", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.py").write_text(JOBS)
    return tmp_path


@pytest.fixture
def run(
    folder: Path,
    address: str,
    console: Console,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Returns a function that runs a command as in a new process."""
    monkeypatch.setenv("XXL_JOB_TOKEN", console.token)

    def run(*arguments: str, admin: str = address) -> Ended:
        registry._handlers.clear()
        sys.modules.pop("jobs", None)
        capfd.readouterr()
        code = main([*arguments, "--admin", admin, "--appname", "my-app"])
        return Ended(code, *capfd.readouterr())

    return run


def test_what_is_declared_is_planned_and_made(run: Run) -> None:
    planned = run("plan", "jobs.py", "--create-group")
    assert planned.code == 0
    assert "+ group my-app" in planned.out
    assert "    schedule: 0 0/5 * * * ?\n    time_zone: Europe/Berlin" in planned.out
    assert planned.out.endswith("Plan: 3 to create, 0 unchanged.\n")
    assert "\033" not in planned.out
    assert all_rows(Apply) == []
    applied = run("apply", "jobs.py", "--create-group", "--yes", "--source", "shop@1a2b")
    assert re.search(r"\nApplied\. To take it back: XXL_JOB_URL=http\S+ duetime undo 1\n$", applied.out)
    assert only_row(Apply).source == "shop@1a2b"
    again = run("plan", "jobs", "--create-group", "--exit-code")
    assert (again.code, again.out) == (0, "Nothing to do: 2 unchanged.\n")


def test_a_declared_parameter_keeps_its_placeholders(run: Run, folder: Path) -> None:
    param = "${time-1d:yyyy-MM-dd} ${parent.result:-none} $${HOME}"
    (folder / "jobs.py").write_text(PLAIN.replace("@job('a')", f"@job('a', owner='ann', param='{param}')"))
    assert run("apply", "jobs.py", "--create-group", "--yes").code == 0
    assert only_row(Job).executor_param == param
    assert run("plan", "jobs.py", "--create-group").out == "Nothing to do: 1 unchanged.\n"


def test_the_documented_jobs_are_made(run: Run, folder: Path) -> None:
    (folder / "jobs.py").write_text(snippet("# jobs.py"))
    assert run("apply", "jobs.py", "--create-group", "-y").code == 0
    assert [each.executor_handler for each in all_rows(Job, author="ann")] == ["closeOrders"]
    assert only_row(Job, executor_handler="mailReport").executor_param == '{"to":"ops@example.com"}'


def test_the_documented_terms_are_all_there_are() -> None:
    table = TEXT.partition("| argument of `@job` |")[2].partition("\n\n")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert set(re.findall(r"`(\w+)`", " ".join(first_cells))) == set(Terms.__annotations__)


def test_only_what_is_declared_is_owned_and_a_job_arrives_stopped(run: Run) -> None:
    run("apply", "jobs.py", "--create-group", "--yes")
    close, report = (only_row(Job, executor_handler=name) for name in ("closeOrders", "report"))
    assert (close.trigger_status, report.trigger_status) == (0, 1)
    assert (close.executor_fail_retry_count, close.author, report.child_ids) == (3, "ann", [close.id])
    owned = json.loads(only_row(CodeObject, managed_key="my-app/closeOrders").fields)
    owned.pop("group_id")
    assert sorted(owned) == ["handler", "owner", "retry_count", "schedule", "schedule_type", "time_zone"]
    assert only_row(Group, app_name="my-app").title == "my-app"
    assert json.loads(only_row(CodeObject, managed_key="my-app").fields) == {}


def test_an_existing_job_of_the_handler_is_adopted(run: Run) -> None:
    group = make_group(app_name="my-app")
    make_job(job_group=group.id, job_desc="Close", executor_handler="closeOrders", trigger_status=1)
    planned = run("plan", "jobs.py", "--exit-code")
    assert (planned.code, "= job my-app/closeOrders" in planned.out) == (1, True)
    run("apply", "jobs.py", "-y")
    assert only_row(Job, executor_handler="closeOrders").trigger_status == 1
    assert [each.kind for each in all_rows(CodeObject)] == ["job", "job"]


def test_a_job_no_longer_declared_is_pruned_by_name(run: Run, folder: Path) -> None:
    run("apply", "jobs.py", "--create-group", "-y")
    (folder / "jobs.py").write_text(
        JOBS.replace(", every=timedelta(minutes=10), enabled=True", "").replace(
            ', children=["closeOrders"]', ""
        )
    )
    assert "my-app/report is managed but not in the files" in run("plan", "jobs.py").out
    assert "- job my-app/report" in run("apply", "jobs.py", "--prune", "report", "-y").out
    assert [each.executor_handler for each in all_rows(Job)] == ["closeOrders"]


def test_errors_name_the_handler_and_the_argument(run: Run, folder: Path) -> None:
    make_group(app_name="my-app")
    text = JOBS.replace("0 0/5 *", "0 0/99 *").replace('["closeOrders"]', '["nope"]')
    (folder / "jobs.py").write_text(text)
    ended = run("plan", "jobs.py")
    assert ended.code == 2
    first, second = ended.err.splitlines()
    assert first.startswith("executor_client: jobs.py:6:1: closeOrders: cron: ")
    assert second.startswith(
        "executor_client: jobs.py:10:1: report: children: There is no job with the key my-app/nope"
    )


def test_a_document_as_json(run: Run) -> None:
    ended = run("plan", "jobs.py", "--create-group", "-o", "json")
    assert json.loads(ended.out)["summary"]["create"] == 3
    ended = run("apply", "jobs.py", "--create-group", "-o", "json", "-y")
    assert json.loads(ended.out)["apply_id"] == 1


def test_refusals_are_one_line(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = run("plan", "jobs.py")
    assert (missing.code, "no executor group my-app" in missing.error) == (2, True)
    assert "add --create-group" in missing.error
    monkeypatch.setattr(sys, "stdin", StringIO())
    assert run("apply", "jobs.py", "--create-group").err.endswith(
        "nothing was changed: add --yes to continue without confirmation\n"
    )
    assert run("plan").error == "name the modules with the handlers, for example myapp.jobs or jobs.py"
    assert "cannot import nope: there is no such module here" in run("plan", "nope").error
    assert run("plan", "nope.py").error == "cannot import nope.py: there is no such file"
    (folder / "jobs.py").write_text(PLAIN)
    assert "jobs.py: none of its handlers (a) declares a job" in run("plan", "jobs.py").error
    (folder / "jobs.py").write_text(
        "from executor_client import job\n\n\n@job('a', retry=-1)\ndef a(): ...\n"
    )
    assert (
        run("plan", "jobs.py").error == "job handler 'a': retry must be a whole number from 0 to 9999, not -1"
    )


def test_standard_streams_may_be_closed(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdin", None)
        assert run("apply", "jobs.py", "--create-group").error == (
            "nothing was changed: add --yes to continue without confirmation"
        )
    (folder / "token").write_text("xxl_" + "a" * 43)
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stderr", None)
        assert run("plan", "jobs.py", "--token-file", "token").code == 2
    monkeypatch.setattr(sys, "stdout", None)
    assert run("apply", "jobs.py", "--create-group", "--yes").code == 0
    assert len(all_rows(Job)) == 2


def test_refused_tokens(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "token").write_text("default_token\n")
    wrong_kind = run("plan", "jobs.py", "--token-file", "token")
    assert (wrong_kind.code, "the access token of executors does not open the API" in wrong_kind.error) == (
        2,
        True,
    )
    assert "--token-file nope: cannot be read" in run("plan", "jobs.py", "--token-file", "nope").error
    (folder / "token").write_text("xxl_" + "a" * 43)
    assert run("plan", "jobs.py", "--token-file", "token").error.startswith("the token is refused: ")
    assert (
        "no answer from the console at http://127.0.0.1:9: "
        in run("plan", "jobs.py", admin="http://127.0.0.1:9").error
    )
    monkeypatch.delenv("XXL_JOB_TOKEN")
    assert run("plan", "jobs.py").error.startswith("no API token for http://127.0.0.1:")
    make_group(app_name="my-app")
    monkeypatch.setenv("XXL_JOB_TOKEN", make_token(Right.VIEW, name="viewer"))
    ended = run("plan", "jobs.py")
    assert (ended.code, "the token does not have the right" in ended.error) == (1, True)
