"""The program ``xxl``: where its settings come from, and how it ends."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.commands.main import xxl


def run(*arguments: object, text: str = "") -> Result:
    return CliRunner().invoke(xxl, [str(argument) for argument in arguments], input=text, prog_name="xxl")


def env_file(folder: Path, **settings: object) -> Path:
    """Write settings, with the home in the same folder, and return the file."""
    path = folder / "xxl-job.env"
    lines = {"HOME": folder / "home", **settings}
    path.write_text("".join(f"XXL_JOB_{name}={value}\n" for name, value in lines.items()))
    return path


def test_settings_come_from_the_file_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = env_file(tmp_path, TIMEZONE="Asia/Tokyo")
    command = ("--env-file", path, "next-times", "--start-ms", 0, "--count", 1, "0 0 12 * * ?")
    assert run(*command).output == "10800000 1970-01-01T12:00:00+09:00\n"
    monkeypatch.setenv("XXL_JOB_TIMEZONE", "UTC")
    assert run(*command).output == "43200000 1970-01-01T12:00:00+00:00\n"


def test_help_needs_no_settings(tmp_path: Path) -> None:
    ended = run("--env-file", tmp_path / "absent", "check-config", "--help")
    assert (ended.exit_code, "Print the settings" in ended.output) == (0, True)


def test_a_wrong_setting_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    ended = run("--env-file", env_file(tmp_path, PORT="http"), "check-config")
    assert ended.exit_code == 2
    assert ended.output == "Error: XXL_JOB_PORT='http': expected a whole number from 1 to 65535\n"
    ended = run("--env-file", tmp_path / "absent", "check-config")
    assert ended.exit_code == 2
    assert ended.output == f"Error: {tmp_path}/absent: cannot be read: No such file or directory\n"


def test_what_is_not_possible_is_exit_code_1(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    ended = run(
        "--env-file", path, "create-user", "ann", "--reset", "--password-stdin", text="a new password\n"
    )
    assert (ended.exit_code, ended.output) == (1, "Error: There is no user ann\n")
