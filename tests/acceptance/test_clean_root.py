"""A stranger's machine: the commands of the README in a root that has Debian's Python alone.

As root: mmdebstrap makes the root, and a user of it installs from an index on loopback that has the wheels of
server and client, and those of ``requirements.txt``.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.console import ADMIN_PASSWORD, Console
from tests.acceptance.programs import ROOT, Program, Programs, free_port, wait_for
from tests.documented.blocks import blocks_of
from tests.support.wheels import SERVER, build_wheels, succeed

pytestmark = [
    pytest.mark.containers,
    pytest.mark.extensive,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="the root is made and entered as root here"),
]

#: Debian's release, and the Python it has
RELEASE, PYTHON = "bookworm", "3.11"
PACKAGES = "python3,python3-venv"
#: the stranger's number in the root
USER = 1000
#: enters a root with its own /proc and shared memory, which end with the process
ENTER = (
    'mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/dev/shm"; exec chroot --userspec=1000:1000 "$@"'
)


class Index(http.server.SimpleHTTPRequestHandler):
    """A simple index of the wheels in a folder: ``/simple/NAME/`` and ``/FILE``."""

    def do_GET(self) -> None:
        if not self.path.startswith("/simple/"):
            super().do_GET()
            return
        name = self.path.removeprefix("/simple/").rstrip("/").replace("-", "_")
        files = [path.name for path in Path(self.directory).iterdir()]
        links = [f'<a href="/{file}">{file}</a>' for file in files if file.lower().startswith(f"{name}-")]
        self.send_response(200 if links else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write("<br>".join(links).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of an index with everything that an installation needs."""
    folder = build_wheels(tmp_path)[SERVER].parent
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:")
    pins = ("--python-version", PYTHON, "--dest", folder, "--requirement", ROOT / "requirements.txt")
    succeed(*pip, *pins, cwd=tmp_path)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Index, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, name="index")
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/simple/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A root of Debian's packages with a user's home."""
    made = tmp_path / "root"
    mmdebstrap = ("mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--include={PACKAGES}")
    subprocess.run([*mmdebstrap, RELEASE, str(made)], check=True, capture_output=True)
    (made / "home/ann").mkdir()
    os.chown(made / "home/ann", USER, USER)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    assert made.stop_all() == []


@dataclass(frozen=True)
class Stranger:
    """A user of the root, who runs commands of the README on ports that are free."""

    root: Path
    programs: Programs
    environ: Mapping[str, str]
    ports: Mapping[str, str]

    def start(self, name: str, commands: str, program: str = "") -> Program:
        """Start commands in a new shell, which becomes the program that its last line names."""
        for port, free in self.ports.items():
            commands = commands.replace(port, free)
        script = "set -eu\ncd\n" + commands.replace(f"\n{program}", f"\nexec {program}")
        enter = ["unshare", "--mount", "sh", "-euc", ENTER, str(self.root), str(self.root)]
        return self.programs.start(name, [*enter, "sh", "-c", script], self.environ)


@pytest.fixture
def stranger(root: Path, index: str, programs: Programs) -> Stranger:
    ports = {"8080": str(free_port()), "9998": str(free_port())}
    environ = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/home/ann",
        "PIP_INDEX_URL": index,
        "XXL_JOB_PORT": ports["8080"],
        "XXL_JOB_EXECUTOR_PORT": str(free_port()),
    }
    return Stranger(root, programs, environ, ports)


def test_the_first_hour_of_the_readme(stranger: Stranger) -> None:
    server, _containers, handler = blocks_of(ROOT / "README.md", "sh")
    (commands,) = blocks_of(ROOT / "docs/cli.md", "bash")
    up = stranger.start("up", server, "bin/duetime up")
    wait_for(up, lambda: "Ctrl-C" in up.output, "it says how to log in", 300)
    assert "home            instance; " in up.output
    password = re.search(r"^admin password: (\S+)$", up.output, re.MULTILINE)
    assert password is not None
    console = Console(f"http://127.0.0.1:{stranger.ports['8080']}/xxl-job-admin")
    assert console.http.get(f"{console.address}/health").json()["status"] == "UP"
    console.login(password[1])
    console.post("/user/updatePwd", oldPassword=password[1], password=ADMIN_PASSWORD)
    console.login()

    executor = stranger.start("executor", handler, "bin/duetime-executor")
    wait_for(executor, lambda: " registered admin=" in executor.output, "it registers", 300)
    group_id = console.add_group("my-app")
    console.await_addresses(group_id)
    job_id = console.add_job(group_id, executorHandler="demoJobHandler")
    console.trigger(job_id)
    (run,) = console.await_runs(group_id, job_id, 1)
    assert run["handleCode"] == 200
    assert "shard 0 of 1" in console.log_text(run["id"])

    scripts = stranger.start("scripts", commands)
    assert scripts.process.wait(120) == 0, scripts.output
    assert (stranger.root / "home/ann/duetime/instance/xxl_job.db").stat().st_uid == USER
    assert [executor.end(), up.end()] == [0, 0]
    assert not [name for name, output in stranger.programs.outputs().items() if "Traceback" in output]
