"""The guide for operators and its reference: commands, statements and patterns work as written."""

import json
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine, make_url

from app.commands.main import OPERATING, duetime
from app.runtime.logging import JSON, TEXT, fields_of, formatter_of
from app.services.auditing import refusals
from executor_client.wire.version import VERSION
from tests.acceptance.programs import ROOT, free_port
from tests.documented.blocks import blocks_of, commands_of, script_of
from tests.documented.shim import NAMES, mapped
from tests.support.databases import SYSTEM_DATABASES, migrate
from tests.support.migrated_databases import Databases, databases_key
from tests.support.wheels import build_wheels, pip_variables

GUIDE, REFERENCE = ROOT / "docs/operations.md", ROOT / "docs/reference/operations.md"
VERSION_LINE = "duetime --version"
#: seconds for all commands of both pages
PAGE_S = 600


@pytest.fixture
def host(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Environment of a host of its own: stand-ins for the programs of root, a free port, the wheels."""
    root = tmp_path / "root"
    (tmp_path / "wheels").mkdir()
    for folder in ("bin", "etc/systemd/system", "opt", "var/lib", "usr/local/bin"):
        (root / folder).mkdir(parents=True)
    for name in NAMES:
        stand_in = root / "bin" / name
        lines = (f"#!{sys.executable}", "import sys", f"sys.path.insert(0, {str(ROOT)!r})")
        run = ("from tests.documented.shim import main", "sys.exit(main())", "")
        stand_in.write_text("\n".join(lines + run))
        stand_in.chmod(0o755)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("XXL_JOB_")}
    yield (
        kept
        | {
            "PATH": f"{root}/bin:{root}/usr/local/bin:{os.environ['PATH']}",
            "DOCUMENTED_ROOT": str(root),
            "XXL_JOB_PORT": str(free_port()),
        }
        | pip_variables(build_wheels(tmp_path / "wheels"))
    )
    for pid in root.glob("*.pid"):
        with suppress(ProcessLookupError):
            os.killpg(int(pid.read_text()), signal.SIGTERM)


@pytest.mark.extensive
@pytest.mark.timeout(PAGE_S + 20)
def test_the_commands_of_both_pages_run_in_order(host: dict[str, str], tmp_path: Path) -> None:
    """Install, check, back up, restore, upgrade and roll back an installation."""
    text = mapped(script_of(GUIDE) + script_of(REFERENCE), Path(host["DOCUMENTED_ROOT"]))
    ended = subprocess.run(
        ["bash", "-c", re.sub(r"(?<=duetime==)[\d.]+", VERSION, text)],
        cwd=tmp_path,
        env=host,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert "verified: restored into a scratch database" in ended.stdout
    # those of a new installation, and workers that are just starting
    expected = {"backup", "files", "nodes", "passwords"}
    assert set(re.findall(r"^ [!X]  (\w+)", ended.stdout, re.MULTILINE)) <= expected


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_each_command_of_the_program_exists(page: Path) -> None:
    # up to a pipe, or a command in an argument
    lines = [re.split(r'\||"?\$\(', command)[0] for command in commands_of(page)]
    used = [shlex.split(line)[1:] for line in lines if line.startswith("duetime ") and line != VERSION_LINE]
    assert len(used) > 5 or page != GUIDE
    for arguments in used:
        names = command_of(arguments)
        ended = CliRunner().invoke(duetime, [*names, "--help"])
        assert ended.exit_code == 0
        options = [argument for argument in arguments if argument.startswith("-")]
        assert [option for option in options if option not in ended.output] == []


def command_of(arguments: Sequence[str]) -> list[str]:
    """Return the names of the command that is called, those of its groups first."""
    command: click.Command = duetime
    context, names = click.Context(duetime), []
    for argument in arguments:
        if isinstance(command, click.Group) and (inner := command.get_command(context, argument)):
            command = inner
            names.append(argument)
    assert names, arguments
    assert not isinstance(command, click.Group), arguments
    return names


def test_the_other_programs_are_stood_in_for() -> None:
    programs = {command.split()[0] for page in (GUIDE, REFERENCE) for command in commands_of(page)}
    assert programs <= {"sudo", "cd", "echo", "duetime"}


@pytest.mark.parametrize(
    ("arguments", "runner"),
    [
        ("jobs list", "caller"),
        ("-o json --env-file backup jobs trigger restore", "caller"),
        ("", "caller"),
        ("--profile doctor jobs list", "caller"),
        ("users create ann --local", "services"),
        ("-o json --profile prod doctor", "services"),
        ("--output=json --env-file=/etc/x doctor", "services"),
        *((f"--env-file /etc/x {name} --all", "services") for name in OPERATING),
    ],
)
def test_the_program_of_a_server_runs_as_its_caller_unless_it_works_on_the_host(
    tmp_path: Path, arguments: str, runner: str
) -> None:
    """Commands over the API use the caller's variables and profiles, which ``sudo`` would drop."""
    programs = {"id": "echo ann", "sudo": 'shift 4; echo "services $*"'}
    programs["opt/bin/duetime"] = 'echo "caller $*"'
    for name, line in programs.items():
        stand_in = tmp_path / name
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        stand_in.write_text(f"#!/bin/sh\n{line}\n")
        stand_in.chmod(0o755)
    script = (ROOT / "deploy/duetime").read_text(encoding="utf-8").replace("/opt/duetime", f"{tmp_path}/opt")
    ended = subprocess.run(
        ["sh", "-c", script, "duetime", *arguments.split()],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout.split(), ended.stderr) == ([runner, *arguments.split()], "")


@pytest.mark.databases("mariadb", "postgresql")
def test_the_statements_for_a_server_give_the_rights_an_upgrade_needs(
    database_kind: str, request: pytest.FixtureRequest
) -> None:
    databases: Databases = request.config.stash[databases_key]
    server = databases.server(database_kind)
    word = "CREATE ROLE" if database_kind == "postgresql" else "GRANT"
    (block,) = [block for block in blocks_of(GUIDE, "sql") if word in block]
    admin = make_url(server.url.format(SYSTEM_DATABASES[server.url.partition("+")[0]]))
    engine = create_engine(admin, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in block.replace("xxl_job", "documented").split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement.replace("%", "%%").rstrip("; \n"))
    engine.dispose()
    migrate(
        admin.set(username="documented", password="PASSWORD", database="documented").render_as_string(
            hide_password=False
        )
    )


@pytest.mark.parametrize("before", ["", "host xxl-job-console[77]: "], ids=["file", "journal"])
@pytest.mark.parametrize("form", [TEXT, JSON])
def test_the_patterns_for_fail2ban_find_refused_logins_only(
    form: str, before: str, caplog: pytest.LogCaptureFixture
) -> None:
    patterns = re.findall(
        r"^(?:failregex =| {10,}) *(\^.*)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(patterns) == 2
    finds = [re.compile(pattern.replace("<ADDR>", r"(?P<address>[\w.:]+)")) for pattern in patterns]
    for address in ("203.0.113.9", "2001:db8::7"):
        refusals.log_login('admin"\nWARNING', address, "password")
    forged = 'x app.services.auditing.refusals login refused address=1.2.3.4 username="'
    logging.getLogger("app.api.executor_api").warning("callback refused reason=%s", forged)
    lines = [before + formatter_of(form).format(record) for record in caplog.records]
    found = [pattern.search(line) for line in lines for pattern in finds]
    assert [each["address"] for each in found if each] == ["203.0.113.9", "2001:db8::7"]


def test_the_sample_of_a_json_line_is_one() -> None:
    (sample,) = blocks_of(REFERENCE, "json")
    line = json.loads(sample)
    record = logging.LogRecord("", 0, "", 0, "run sent log_id=%s fate=%s ms=%s", (51, "accepted", 2), None)
    assert line["message"] == record.getMessage()
    assert {name: line[name] for name in fields_of(record)} == fields_of(record)
