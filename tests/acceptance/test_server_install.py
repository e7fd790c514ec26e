"""The source release of the server: what the wheel contains, and that it runs outside the checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor_client.wire.version import VERSION
from tests.acceptance.console import Console
from tests.acceptance.programs import ROOT, Programs, free_port, wait_for

#: building, or a new environment and an installation on a slow machine
INSTALL_S = 300
#: what is built from; the rest of the checkout is not needed
SOURCES = ("app", "executor_client", "migrations", "workers", "wsgi.py", "pyproject.toml", "setup.py")
SOURCES += ("requirements.in", "README.md", "LICENSE")
#: by their suffixes
NOT_PACKED = {".po", ".pyc", ".toml"}
#: those of the client's own package
OF_CLIENT = {"executor_client/LICENSE", "executor_client/README.md"}

pytestmark = pytest.mark.timeout(INSTALL_S * 2)


def succeed(*arguments: str | Path, cwd: Path) -> str:
    """Run a program that must succeed, without settings of this process; return its output."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("XXL_JOB_", "PYTHON"))}
    ended = subprocess.run(
        arguments, cwd=cwd, env=clean, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source release, not from the checkout."""
    folder = tmp_path_factory.mktemp("release")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "build"))
        else:
            shutil.copy(ROOT / name, folder)
    succeed(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", cwd=folder)
    built = {path.name: path for path in (folder / "dist").iterdir()}
    assert set(built) == {
        f"xxl_job_scheduler-{VERSION}.tar.gz",
        f"xxl_job_scheduler-{VERSION}-py3-none-any.whl",
    }
    return built[f"xxl_job_scheduler-{VERSION}-py3-none-any.whl"]


def test_the_wheel_contains_everything_the_server_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
        about = f"xxl_job_scheduler-{VERSION}.dist-info"
        programs = archive.read(f"{about}/entry_points.txt").decode()
    needed = {
        str(path.relative_to(ROOT))
        for folder in ("app", "executor_client", "migrations", "workers")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in NOT_PACKED and "build" not in path.relative_to(ROOT).parts
    } - OF_CLIENT
    assert {"app/static/vendor/htmx/htmx-2.min.js", "app/data/common-passwords.txt.gz"} <= needed
    assert {name for name in packed if not name.startswith(about)} == needed | {"wsgi.py"}
    assert f"{about}/licenses/LICENSE" in packed
    for program in ("xxl = app.__main__:main", "xxl-job-console = wsgi:main", "xxl-job-workers = "):
        assert program in programs


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    assert made.stop_all() == []


@pytest.mark.newcomer
@pytest.mark.extensive
def test_an_installed_wheel_runs_outside_the_checkout(
    wheel: Path, tmp_path: Path, programs: Programs
) -> None:
    venv = tmp_path / "venv"
    succeed(sys.executable, "-m", "venv", venv, cwd=tmp_path)
    succeed(venv / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    xxl = venv / "bin" / "xxl"
    assert succeed(xxl, "--version", cwd=folder) == f"xxl {VERSION}\n"
    succeed(xxl, "db", "upgrade", cwd=folder)

    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "XXL_JOB_PORT": str(port),
        "XXL_JOB_ADMIN_PASSWORD": "long-enough-77",
    }
    served = programs.start("console", [str(venv / "bin" / "xxl-job-console")], environ, cwd=folder)
    workers = programs.start("workers", [str(venv / "bin" / "xxl-job-workers")], environ, cwd=folder)
    console = Console(f"http://127.0.0.1:{port}/xxl-job-admin")
    wait_for(served, console.answers, "it answers")
    wait_for(workers, lambda: "scheduler started" in workers.output, "the scheduler has started")
    page = console.http.get(f"{console.address}/toLogin", headers={"Accept-Language": "zh-CN"}).text
    assert "登录" in page
    style = console.http.get(f"{console.address}/static/vendor/bootstrap/bootstrap.min.css")
    assert style.status_code == 200
    console.login("long-enough-77")
    assert {path.name for path in folder.iterdir()} == {"instance"}
    assert "database and schema: ok" in succeed(xxl, "check-config", cwd=folder)
    assert (workers.end(), served.end()) == (0, 0)
