"""Which program hints name: the one that runs, or the one that is installed beside another."""

import sys
from pathlib import Path

import pytest

from executor_client.config.program_name import program_name


@pytest.mark.parametrize(
    ("started", "installed", "name"),
    [
        ("xxl", ["duetime", "duetime-cli", "xxl"], "xxl"),
        ("duetime-executor", ["duetime", "duetime-cli"], "duetime"),
        ("duetime-executor", ["duetime-cli"], "duetime-cli"),
        ("__main__.py", [], "duetime"),
    ],
)
def test_a_hint_names_a_program_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, installed: list[str], name: str
) -> None:
    for program in installed:
        (tmp_path / program).touch()
    monkeypatch.setattr(sys, "argv", [f"{tmp_path}/{started}"])
    monkeypatch.setattr(sys, "executable", f"{tmp_path}/python")
    assert program_name() == name
