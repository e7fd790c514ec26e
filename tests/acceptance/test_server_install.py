"""The source release of the server: what the wheel contains, and that it runs outside the checkout."""

import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor_client.wire.version import VERSION
from tests.acceptance.console import Console
from tests.acceptance.programs import ROOT, Programs, free_port, wait_for
from tests.support.wheels import CLIENT, INSTALL_S, SERVER, build_wheels, succeed

#: by their suffixes: what a wheel contains of deploy, and what it leaves out elsewhere
UNITS = {".service", ".timer"}
NOT_PACKED = {".po", ".pyc", ".toml"}

pytestmark = pytest.mark.timeout(INSTALL_S * 2)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of server and client, built from their source releases, not from the checkout."""
    return build_wheels(tmp_path_factory.mktemp("release"))


def test_the_wheel_contains_everything_the_server_reads_and_requires_the_client(
    wheels: dict[str, Path],
) -> None:
    with zipfile.ZipFile(wheels[SERVER]) as archive:
        packed = set(archive.namelist())
        about = f"duetime-{VERSION}.dist-info"
        programs = archive.read(f"{about}/entry_points.txt").decode()
        requirements = archive.read(f"{about}/METADATA").decode()
    needed = {
        str(path.relative_to(ROOT))
        for folder in ("app", "migrations", "workers")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in NOT_PACKED and "build" not in path.relative_to(ROOT).parts
    }
    assert {"app/static/vendor/htmx/htmx-2.min.js", "app/data/common-passwords.txt.gz"} <= needed
    files = f"duetime-{VERSION}.data/data/share/duetime"
    deployed = [path.relative_to(ROOT / "deploy") for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    units = {path for path in deployed if path.suffix in UNITS}
    assert len(units) == 7
    others = {path for path in deployed if path.parts[0] in ("duetime", "monitoring", "nginx")}
    assert {name for name in packed if not name.startswith(about)} == {
        *needed,
        *(f"{files}/{path}" for path in units | others),
        "wsgi.py",
    }
    assert f"{about}/licenses/LICENSE" in packed
    for program in ("duetime = app.__main__:main", "xxl-job-console = wsgi:main", "xxl-job-workers = "):
        assert program in programs
    assert f"Requires-Dist: duetime-executor[cli]=={VERSION}\n" in requirements
    assert "Requires-Dist: sqlalchemy<2.1\n" in requirements


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    assert made.stop_all() == []


class Environment:
    """A new virtual environment, into which the wheels are installed."""

    def __init__(self, folder: Path, wheels: dict[str, Path]) -> None:
        self.bin, self.folder = folder / "venv" / "bin", folder
        self._wheels = wheels[SERVER].parent
        succeed(sys.executable, "-m", "venv", folder / "venv", cwd=folder)

    def pip(self, *arguments: str) -> None:
        succeed(self.bin / "python", "-m", "pip", "--quiet", *arguments, cwd=self.folder)

    def install(self, name: str) -> None:
        self.pip("install", "--find-links", str(self._wheels), f"{name}=={VERSION}")

    def run(self, program: str, *arguments: str, folder: Path | None = None) -> str:
        return succeed(self.bin / program, *arguments, cwd=folder or self.folder)


@pytest.mark.newcomer
@pytest.mark.extensive
def test_an_installed_server_runs_outside_the_checkout(
    wheels: dict[str, Path], tmp_path: Path, programs: Programs
) -> None:
    environment = Environment(tmp_path, wheels)
    environment.install(SERVER)
    for program in ("duetime", "xxl"):
        assert environment.run(program, "--version") == f"{program} {VERSION}\n"
    home = tmp_path / "in production"
    environment.run("duetime", "init", str(home))

    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "XXL_JOB_PORT": str(port),
        "XXL_JOB_EXECUTOR_PORT": str(free_port()),
        "XXL_JOB_ADMIN_PASSWORD": "long-enough-77",
    }
    command = [str(environment.bin / "duetime"), "up", "--home", str(home), "--demo"]
    up = programs.start("up", command, environ, cwd=tmp_path)
    wait_for(up, lambda: "Ctrl-C" in up.output, "everything runs")
    assert str(home) in up.output
    console = Console(f"http://127.0.0.1:{port}/xxl-job-admin")
    page = console.http.get(f"{console.address}/toLogin", headers={"Accept-Language": "zh-CN"}).text
    assert "登录" in page
    console.login("long-enough-77")
    assert "database and schema: ok" in environment.run("duetime", "check-config", folder=home)
    assert environment.run("duetime", "jobs", "list", "--local", "--quiet", folder=home).split()
    assert up.end() == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"venv", home.name}


@pytest.mark.newcomer
@pytest.mark.extensive
@pytest.mark.parametrize("first", [SERVER, CLIENT])
def test_server_and_client_share_an_environment(wheels: dict[str, Path], tmp_path: Path, first: str) -> None:
    environment = Environment(tmp_path, wheels)
    environment.install(first)
    environment.install(SERVER if first == CLIENT else f"{CLIENT}[cli]")
    for program in ("duetime", "duetime-cli", "xxl"):
        assert "Examine the installation" in environment.run(program, "doctor", "--help")
    environment.pip("uninstall", "--yes", SERVER)
    assert not (environment.bin / "duetime").exists()
    for program in ("duetime-cli", "xxl"):
        assert environment.run(program, "--version") == f"{program} {VERSION}\n"
        assert "Over the API" in environment.run(program, "--help")
    assert environment.run("duetime-executor", "--version") == f"{VERSION}\n"
    environment.install(SERVER)
    environment.pip("uninstall", "--yes", CLIENT)
    environment.install(SERVER)
    assert environment.run("duetime", "--version") == f"duetime {VERSION}\n"
