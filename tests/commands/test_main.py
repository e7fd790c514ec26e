"""The program ``duetime``: where its settings come from, and how it ends."""

import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from app.commands import invocation
from app.commands.flask_app import create_command_app
from app.commands.main import duetime
from app.settings.config import Config
from executor_client.cli.main import load_command
from executor_client.wire.version import VERSION
from tests.support.commands import env_file, run
from tests.support.databases import ROOT, temporary_directory


def test_settings_come_from_the_file_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = env_file(tmp_path, TIMEZONE="Asia/Tokyo")
    command = ("--env-file", path, "next-times", "--start-ms", 0, "--count", 1, "0 0 12 * * ?")
    assert run(*command).output == "10800000 1970-01-01T12:00:00+09:00\n"
    monkeypatch.setenv("XXL_JOB_TIMEZONE", "UTC")
    assert run(*command).output == "43200000 1970-01-01T12:00:00+00:00\n"


def test_a_schedule_that_never_fires_says_so(tmp_path: Path) -> None:
    ended = run("--env-file", env_file(tmp_path), "next-times", "0 0 0 30 2 ?")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "none: the schedule never fires\n")


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full exists on Linux only")
def test_a_full_disk_under_the_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "app", "completion", "bash"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stderr) == (1, "Error: cannot write: No space left on device\n")


def test_help_needs_no_settings(tmp_path: Path) -> None:
    ended = run("--env-file", tmp_path / "absent", "check-config", "--help")
    assert (ended.exit_code, "Print each setting" in ended.output) == (0, True)


def test_a_wrong_setting_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    ended = run("--env-file", env_file(tmp_path, PORT="http"), "check-config")
    assert ended.exit_code == 2
    file = tmp_path / "xxl-job.env"
    assert ended.output == f"Error: XXL_JOB_PORT='http' ({file}): expected a whole number from 1 to 65535\n"
    ended = run("--env-file", tmp_path / "absent", "check-config")
    assert ended.exit_code == 2
    assert ended.output == f"Error: {tmp_path}/absent: cannot be read: No such file or directory\n"
    ended = run("--env-file", env_file(tmp_path), "link-identity", "ann", "subject")
    assert (ended.exit_code, ended.output) == (2, "Error: XXL_JOB_OIDC_ISSUER is not set\n")


def test_what_is_not_possible_is_exit_code_1(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    ended = run(
        "--env-file", path, "create-user", "ann", "--reset", "--password-stdin", text="a new password\n"
    )
    assert (ended.exit_code, ended.output) == (1, "Error: There is no user ann\n")


def test_commands_end_in_order_with_standard_streams_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    monkeypatch.setattr(sys, "stdin", None)
    said = {
        ("create-user", "anna"): (2, "cannot prompt with a standard stream closed: add --password-stdin"),
        ("create-user", "anna", "--password-stdin"): (1, "Enter a password"),
        ("promote", "-"): (2, "new database: expected sqlite:///FILE"),
        ("next-times",): (0, ""),
    }
    for command, (exit_code, line) in said.items():
        with pytest.raises(SystemExit) as ended:
            duetime(["--env-file", str(path), *command])
        assert (ended.value.code, line in capsys.readouterr().err) == (exit_code, True)
    monkeypatch.setattr(sys, "stdin", StringIO('{"expr": "0 0 12 * * ?"}\n'))
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        duetime(["--env-file", str(path), "next-times"])
    assert ended.value.code == 0


def test_without_a_terminal_a_password_comes_from_standard_input_only(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    run("--env-file", path, "create-user", "anna", "--password-stdin", text="battery-staple-9\n")
    for command in (("create-user", "anna", "--reset"), ("users", "reset-password", "anna", "--local")):
        ended = subprocess.run(
            [sys.executable, "-m", "app", "--env-file", path, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            start_new_session=True,
        )
        line = "Error: cannot prompt without a terminal: add --password-stdin"
        assert (ended.returncode, ended.stderr.splitlines()) == (2, [line])


@pytest.mark.parametrize("options", [("--admin",), ("--group", "1")])
def test_a_reset_refuses_what_it_would_not_change(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = env_file(tmp_path)
    ended = run("--env-file", path, "create-user", "ann", "--reset", *options, "--password-stdin", text="x\n")
    assert ended.exit_code == 2
    assert "--reset keeps role and groups; leave out --admin and --group" in ended.output


@pytest.mark.parametrize(
    ("name", "password", "handler", "line"),
    [
        (b"ann", b"b\xe4ttery-st\xe4ple\n", "strict", b"Error: the password is not UTF-8\n"),
        pytest.param(
            *(b"ann", b"b\xe4ttery-st\xe4ple\n", "surrogateescape", b"Error: the password is not UTF-8\n"),
            marks=pytest.mark.extensive,
        ),
        (b"j\xe4rgen", b"battery-staple-9\n", "strict", b"Error: There is no user j\\udce4rgen\n"),
    ],
)
def test_text_that_is_not_utf_8_is_one_line(
    tmp_path: Path, name: bytes, password: bytes, handler: str, line: bytes
) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    options = ("--env-file", path, "create-user", name, "--reset", "--password-stdin")
    command = [sys.executable, "-m", "app", *options]
    environment = {**os.environ, "PYTHONIOENCODING": f"utf-8:{handler}"}
    ended = subprocess.run(
        command, input=password, capture_output=True, check=False, cwd=ROOT, env=environment
    )
    assert ended.returncode in (1, 2)
    assert ended.stderr == line


def test_the_token_is_replaced_by_a_command(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "access_token").write_text("a-token-of-16-signs\n")
    begun = run("--env-file", path, "rotate-token")
    assert (begun.exit_code, "then: give all executors the new token" in begun.output) == (0, True)
    ended = run("--env-file", path, "rotate-token", "--end")
    assert (ended.exit_code, "the former token is removed" in ended.output) == (0, True)
    again = run("--env-file", path, "rotate-token", "--end")
    assert (again.exit_code, "one token only" in again.output) == (2, True)


def test_the_first_password_is_forgotten_once_it_is_reset(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    stored = tmp_path / "home" / "admin_password"
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    for name, is_left in (("anna", True), ("admin", False)):
        stored.write_text("first-one\n")
        command = ("--env-file", path, "create-user", name, "--password-stdin")
        assert run(*command, text="a new password\n").exit_code == 0
        assert stored.exists() is is_left
        stored.write_text("first-one\n")
        assert run(*command, "--reset", text="another password\n").exit_code == 0
        assert stored.exists() is is_left


def test_a_command_without_a_database_says_where_it_looked_and_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(invocation, "ENV_FILE", tmp_path / "etc")
    for command in (
        ("check-config",),
        ("create-user", "ann"),
        ("link-identity", "--remove", "ann"),
        ("seed-demo",),
    ):
        ended = run(*command)
        assert ended.exit_code == 2
        *_, line = ended.output.splitlines()
        assert line.startswith(
            f"Error: XXL_JOB_DATABASE_URL: sqlite:///{tmp_path}/instance/xxl_job.db cannot be opened:"
        )
        assert line.endswith(
            f" db upgrade; home: {tmp_path}/instance (default);"
            f" settings: environment; there is no {tmp_path}/etc"
        )
    assert not list(tmp_path.iterdir())


def test_an_id_that_no_group_can_have_is_refused(tmp_path: Path) -> None:
    ended = run("--env-file", env_file(tmp_path), "create-user", "ann", "--group", 2**31)
    assert ended.exit_code == 2
    assert "2147483648 is not in the range 1<=x<=2147483647" in ended.output


def test_a_database_without_tables_is_named(tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    file.touch()
    path = env_file(tmp_path, DATABASE_URL=f"sqlite:///{file}")
    line = run("--env-file", path, "create-user", "ann").output.rstrip()
    assert line.startswith("Error: the database has no tables of this program yet; run: ")
    assert line.endswith(
        f"; database: sqlite:///{file}; home: {tmp_path}/home ({path}); settings: environment and {path}"
    )


def test_flask_without_a_database_creates_nothing(tmp_path: Path) -> None:
    app = create_command_app(
        Config(home=tmp_path / "home", database_url=f"sqlite:///{tmp_path}/home/xxl_job.db")
    )
    ended = app.test_cli_runner().invoke(args=["check-config"])
    assert ended.exit_code == 2
    assert f"home: {tmp_path}/home" in ended.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["heads", "history"])
def test_flask_lists_the_migrations_without_a_database(tmp_path: Path, command: str) -> None:
    app = create_command_app(
        Config(home=tmp_path / "home", database_url="mysql+pymysql://ann@127.0.0.1:1/xxl")
    )
    ended = app.test_cli_runner().invoke(args=["db", command])
    assert ended.exit_code == 0, ended.output


def test_the_settings_of_the_services_are_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file of the services, the default home is theirs too, in whatever folder the command runs."""
    home = tmp_path / "var"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(invocation, "ENV_FILE", tmp_path / "etc")
    monkeypatch.setattr(invocation, "SERVICE_HOME", home)
    (tmp_path / "etc").write_text("XXL_JOB_PORT=9090\n")
    assert run("db", "upgrade").exit_code == 0
    assert (home / "xxl_job.db").exists()
    ended = run("check-config")
    assert (ended.exit_code, f"{home}/xxl_job.db" in ended.output) == (0, True)


def test_a_file_of_the_services_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "etc").write_text("")
    monkeypatch.setattr(invocation, "ENV_FILE", tmp_path / "etc")
    monkeypatch.setattr(invocation.os, "access", lambda *_: False)
    assert (
        f"you may not read {tmp_path}/etc, run this as the user of the services" in run("check-config").output
    )


def test_the_version_is_that_of_the_program() -> None:
    assert run("--version").output == f"duetime {VERSION}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_told_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary_directory() as folder:
        path = env_file(folder)
        path.chmod(0o644)
        assert run("--env-file", path, "db", "upgrade").exit_code == 0
        os.seteuid(65534)
        try:
            without_database = run("--env-file", path, "check-config").output
            monkeypatch.setenv("XXL_JOB_SECRET_KEY_FILE", str(folder / "home" / "key"))
            without_key = run("--env-file", path, "check-config").output
        finally:
            os.seteuid(0)
    assert "xxl_job.db cannot be opened: Permission denied; home: " in without_database.splitlines()[-1]
    assert "key: the file cannot be read: Permission denied" in without_key


def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    ended = run("--env-file", path, "backup", tmp_path / ("x" * 300))
    assert (ended.exit_code, len(ended.output.splitlines())) == (2, 1)
    assert ended.output.endswith(": File name too long\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_in_order(number: signal.Signals) -> None:
    code = (
        "import signal, sys, app.commands.main as commands; from app import __main__ as program\n"
        "signal.signal(int(sys.argv[1]), signal.SIG_DFL)\n"  # nohup ignores SIGHUP
        "commands.duetime = lambda **_: signal.raise_signal(int(sys.argv[1]))\n"
        "try: program.main()\n"
        "finally: print('undone')\n"
    )
    command = [sys.executable, "-c", code, str(int(number))]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "undone\n", "")


def test_a_command_over_the_api_imports_neither_the_database_nor_the_console() -> None:
    """Each takes a multiple of the time of the command."""
    script = (
        "import sys, click.testing, app.commands.main as main\n"
        "ended = click.testing.CliRunner().invoke(main.duetime, ['jobs', 'list', '--profile', 'none'])\n"
        "assert ended.exit_code == 2, ended.output\n"
        "print(*sorted({'sqlalchemy', 'flask', 'alembic', 'app.commands.context'} & {*sys.modules}))"
    )
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "\n", "")


def test_every_command_is_known_by_its_name() -> None:
    places = duetime.places
    assert {name: load_command(place).name for name, place in places.items()} == {
        name: name for name in places
    }


def test_a_command_imports_no_other_command() -> None:
    script = (
        "import sys, click.testing, app.commands.main as main\n"
        "click.testing.CliRunner().invoke(main.duetime, ['db', '--help'])\n"
        "print(*sorted(name for name in sys.modules if name in PLACES))"
    )
    modules = {place.partition(":")[0] for place in duetime.places.values()}
    command = [sys.executable, "-c", script.replace("PLACES", repr(modules))]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert ended.stdout.split() == ["app.commands.schema"]


#: what only other commands need
NOT_LOADED = (
    *("alembic", "apprise", "croniter", "cryptography", "requests", "yaml", "executor_client.runs.context"),
    *("app.api.v1.document", "app.services.code.apply", "app.store.copies.after_restore"),
    *("app.api.v1.resources.users", "app.api.v1.resources.calendars.calendars"),
    *("app.api.v1.resources.jobs.job_changes", "app.services.jobs.jobs"),
)


@pytest.mark.parametrize(
    "command", ["jobs list --local", "runs list --local", "groups list --local", "doctor"]
)
def test_a_command_on_the_database_imports_nothing_that_only_others_need(
    tmp_path: Path, command: str
) -> None:
    """All resources of the API take longer to import than the rest of a command."""
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    script = (
        "import sys, click.testing, app.commands.main as main\n"
        "ended = click.testing.CliRunner().invoke(main.duetime, sys.argv[1:])\n"
        "assert ended.exit_code < 2, ended.output\n"
        f"print(*[name for name in {NOT_LOADED} if name in sys.modules])"
    )
    arguments = [sys.executable, "-c", script, "--env-file", str(path), *command.split()]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "\n", "")
