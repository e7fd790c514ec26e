"""Fixtures: a fake API, and the program called against it over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.fake_api import TOKEN, FakeApi
from tests.support.cli import Run, plain_run
from tests.support.serving import serving


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def address(api: FakeApi) -> Iterator[str]:
    with serving(api) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No setting of the environment and no profile; return the folder of configuration."""
    for name in ("URL", "TOKEN", "TOKEN_FILE", "PROFILE"):
        monkeypatch.delenv(f"XXL_JOB_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture
def run(clean: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command against the fake API."""
    monkeypatch.setenv("XXL_JOB_URL", address)
    monkeypatch.setenv("XXL_JOB_TOKEN", TOKEN)
    return plain_run
