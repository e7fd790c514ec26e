"""Which console is called with which token: login, profiles, environment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.fake_api import TOKEN, FakeApi
from tests.support.cli import error_of, plain_run
from tests.support.databases import ROOT


def test_a_login_is_kept_and_used(clean: Path, address: str) -> None:
    ended = plain_run("login", f"{address}/api/v1/", text=f"{TOKEN}\n")
    path = clean / "xxl-job" / "profiles.json"
    assert ended.stdout == f"{address}: token laptop accepted; kept as profile default in {path}\n"
    assert TOKEN not in ended.output
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(plain_run("whoami", "-o", "json").stdout)["url"] == address
    assert plain_run("logout").exit_code == 0
    assert error_of(plain_run("whoami"), 2) == (
        "no console to call: there is no profile, and XXL_JOB_URL is not set; run: duetime login URL"
    )


def test_a_refused_token_is_not_kept(clean: Path, address: str) -> None:
    ended = plain_run("login", address, "--token-stdin", text="xxl_wrong\n")
    assert error_of(ended, 2) == "the token is refused: the token is unknown; run: duetime login"
    assert not clean.exists()


def test_profiles_are_named(clean: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("east", "west"):
        plain_run("login", address, "--profile", name, "--token-stdin", text=f"{TOKEN}\n")
    monkeypatch.setenv("XXL_JOB_PROFILE", "east")
    assert plain_run("whoami").exit_code == 0
    assert plain_run("--profile", "west", "whoami").exit_code == 0
    line = error_of(plain_run("whoami", "--profile", "north"), 2)
    assert line.startswith("there is no profile north in ")
    assert line.endswith("(there: east, west); run: duetime login")


def test_a_file_that_others_can_read_is_refused(clean: Path, address: str) -> None:
    plain_run("login", address, "--token-stdin", text=f"{TOKEN}\n")
    path = clean / "xxl-job" / "profiles.json"
    path.chmod(0o700)
    assert plain_run("whoami").exit_code == 0
    path.chmod(0o640)
    assert (
        error_of(plain_run("whoami"), 2) == f"{path}: others can read the tokens in it; run: chmod 600 {path}"
    )


def test_the_environment_replaces_a_profile(
    clean: Path, api: FakeApi, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain_run("login", address, "--token-stdin", text=f"{TOKEN}\n")
    api.token = "xxl_new"
    assert plain_run("whoami").exit_code == 2
    (tmp_path / "token").write_text("xxl_new\n")
    monkeypatch.setenv("XXL_JOB_TOKEN_FILE", str(tmp_path / "token"))
    assert plain_run("whoami").exit_code == 0
    monkeypatch.setenv("XXL_JOB_TOKEN", TOKEN)
    assert (
        error_of(plain_run("whoami"), 2)
        == "XXL_JOB_TOKEN and XXL_JOB_TOKEN_FILE are both set: set one of them"
    )
    monkeypatch.delenv("XXL_JOB_TOKEN_FILE")
    monkeypatch.delenv("XXL_JOB_TOKEN")
    monkeypatch.setenv("XXL_JOB_URL", address)
    line = error_of(plain_run("whoami"), 2)
    assert line == "XXL_JOB_URL is set, but no token: set XXL_JOB_TOKEN or XXL_JOB_TOKEN_FILE"


@pytest.mark.parametrize("url", ["jobs.example.com", "ftp://host", "http://ann:secret@host/", "http://h?x=1"])
def test_an_address_is_checked(clean: Path, url: str) -> None:
    assert "address of a console" in error_of(plain_run("login", url), 2)


def test_a_console_without_the_api_is_named(clean: Path, api: FakeApi, address: str) -> None:
    api.on("GET", "/me", {"code": 500, "msg": "invalid request, uri-mapping(v1/me) not found."})
    ended = plain_run("login", address, "--token-stdin", text=f"{TOKEN}\n")
    assert error_of(ended, 1) == (
        f"no answer from the console at {address}: no API v1 answers here; expected the address of a console"
    )


def test_importing_the_client_loads_no_library() -> None:
    libraries = {"urllib3", "click", "yaml", "flask"}
    code = f"import sys, executor_client; sys.exit(bool({libraries} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
