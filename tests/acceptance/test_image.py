"""The images: built by podman from the Dockerfile, on a base of Debian's own packages, and started.

As root, without a docker daemon and without a registry: the base image is made by mmdebstrap.
"""

import json
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acceptance.console import ADMIN_PASSWORD, Console
from tests.acceptance.programs import ROOT, free_port
from tests.support.eventually import eventually

pytestmark = [
    pytest.mark.containers,
    pytest.mark.extensive,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="containers are started as root here"),
]

BASE = "docker.io/library/debian:bookworm-slim"
#: authorities of this host: some networks have their own
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
#: seconds of the compose files' stop_grace_period
GRACE_S = 30
START_S = 90
#: bytes
ADDED_MAX = 275_000_000
#: what compose.yaml sets, on the host's network
CONFINED = (
    "--read-only",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    "--tmpfs=/tmp",
    "--network=host",
)
#: podman's own are above those of this process, which cannot raise them everywhere
FILES = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65_536)
LIMITS = (f"--ulimit=nofile={FILES}:{FILES}", "--ulimit=nproc=4096:4096")
APPNAME = "xxl-job-executor-sample"


@dataclass
class Podman:
    """podman with a storage of its own, and the containers it started."""

    folder: Path
    started: list[str] = field(default_factory=list)

    def __call__(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        storage = (
            f"--root={self.folder}/storage",
            f"--runroot={self.folder}/run",
            f"--tmpdir={self.folder}/tmp",
        )
        engine = ("--runtime=runc", "--cgroup-manager=cgroupfs", "--events-backend=none")
        command = ["podman", *storage, *engine, *arguments]
        # health checks are asked for here, not by timers of systemd
        environ = {**os.environ, "DISABLE_HC_SYSTEMD": "true"}
        ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
        assert ended.returncode == 0 or not check, (
            f"{arguments}:\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        )
        return ended

    def run(self, name: str, image: str, *role: str, **settings: str) -> None:
        """Start a container with the volumes ``home`` and the folder of secrets."""
        home = name.partition("-")[0]
        volumes = (f"--volume={home}:/var/lib/xxl-job", f"--volume={self.folder}:/run/secrets:ro")
        variables = [f"--env={variable}={value}" for variable, value in settings.items()]
        self.started.append(name)
        self(
            "run",
            "--detach",
            "--pull=never",
            f"--name={name}",
            *CONFINED,
            *LIMITS,
            *volumes,
            *variables,
            image,
            *role,
        )

    def await_health(self, name: str) -> None:
        def healthy() -> bool:
            assert self("inspect", "--format={{.State.Running}}", name).stdout.strip() == "true", self.log(
                name
            )
            return self("healthcheck", "run", name, check=False).returncode == 0

        eventually(healthy, START_S, f"{name} is healthy")

    def log(self, name: str) -> str:
        ended = self("logs", name)
        return ended.stdout + ended.stderr

    def stop(self, name: str) -> int:
        """Send SIGTERM, wait for the grace of the compose files, and return the exit code."""
        self("stop", f"--time={GRACE_S}", name)
        return int(self("inspect", "--format={{.State.ExitCode}}", name).stdout)


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    """Both images, built."""
    made = Podman(Path(tempfile.mkdtemp(prefix="images-")))  # podman allows 50 characters
    made.folder.chmod(0o755)
    base, hook = made.folder / "base.tar", 'mkdir -p "$1/usr/local/share/ca-certificates"'
    if AUTHORITIES.exists():
        hook += f'; cp {AUTHORITIES} "$1/usr/local/share/ca-certificates/host.crt"'
    mmdebstrap = ("mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--customize-hook={hook}")
    subprocess.run([*mmdebstrap, "bookworm", str(base)], check=True, capture_output=True)
    made("import", str(base), BASE)
    base.unlink()
    build = ("build", "--isolation=chroot", "--format=docker", "--pull=never", "--layers")
    made(*build, "--tag=xxl-job", ".")
    made(*build, "--tag=xxl-job-executor", "--target=executor", ".")
    (made.folder / "token").write_text("image-token-0123456789\n")
    (made.folder / "token").chmod(0o444)
    yield made
    made("rm", "--all", "--force", "--volumes", check=False)
    made("rmi", "--all", "--force", check=False)
    subprocess.run(["umount", "--lazy", str(made.folder / "storage" / "overlay")], check=False)
    shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture
def site(podman: Podman) -> Iterator[Callable[..., Console]]:
    """Start containers of these roles and a demo executor, and return a console after the login."""

    def start(*roles: str) -> Console:
        port, executor_port = free_port(), free_port()
        address = f"http://127.0.0.1:{port}/xxl-job-admin"
        for role in roles:
            podman.run(
                f"home-{role}",
                "xxl-job",
                role,
                XXL_JOB_PORT=str(port),
                XXL_JOB_NODE_NAME="node-1",
                XXL_JOB_ADMIN_PASSWORD=ADMIN_PASSWORD,
                XXL_JOB_ACCESS_TOKEN_FILE="/run/secrets/token",
            )
            podman.await_health(f"home-{role}")
        podman.run(
            "executor",
            "xxl-job-executor",
            *("executor_client.demo", "--token-file", "/run/secrets/token"),
            XXL_JOB_EXECUTOR_PORT=str(executor_port),
            XXL_JOB_EXECUTOR_APPNAME=APPNAME,
            XXL_JOB_ADMIN_ADDRESSES=address,
        )
        podman.await_health("executor")
        console = Console(address)
        console.login()
        return console

    yield start
    for name in podman.started:
        podman("rm", "--force", name)
    podman("volume", "rm", "--all", "--force")
    podman.started.clear()


def run_a_job(console: Console) -> None:
    (group,) = [row for row in console.groups(APPNAME) if row["appname"] == APPNAME]
    console.await_addresses(group["id"])
    job_id = console.add_job(group["id"], executorHandler="sleepJobHandler")
    console.trigger(job_id, "0.1")
    (run,) = console.await_runs(group["id"], job_id, 1)
    assert (run["handleCode"], run["handleMsg"]) == (200, "slept 0.1 s")


@pytest.mark.parametrize("roles", [["all"], ["console", "workers"]], ids="+".join)
def test_a_job_runs_and_every_container_ends_in_order(
    podman: Podman, site: Callable[..., Console], roles: Sequence[str]
) -> None:
    run_a_job(site(*roles))
    assert [podman.stop(name) for name in ("executor", *(f"home-{role}" for role in reversed(roles)))] == [
        0 for _ in ("executor", *roles)
    ]
    log = podman.log(f"home-{roles[-1]}")
    assert "workers stopped" in log
    assert "child killed" not in log


@pytest.mark.parametrize(("image", "port"), [("xxl-job", "8080/tcp"), ("xxl-job-executor", "9999/tcp")])
def test_an_image_has_the_installed_program_alone(podman: Podman, image: str, port: str) -> None:
    (found,) = json.loads(podman("image", "inspect", image).stdout)
    assert found["Config"]["User"] == "10001:10001"
    assert [*found["Config"]["ExposedPorts"]] == [port]
    (base,) = json.loads(podman("image", "inspect", BASE).stdout)
    assert found["Size"] - base["Size"] < ADDED_MAX
    tools = "for tool in cc gcc make git; do command -v $tool; done"
    script = f"ls -A /opt /opt/duetime; {tools}; touch /opt/x /etc/x"
    alone = ("run", "--rm", "--network=none", *LIMITS, "--entrypoint=sh", image, "-c", script)
    listed = podman(*alone, check=False)
    environment = {"bin", "include", "lib", "lib64", "pyvenv.cfg"} | (
        {"share"} if image == "xxl-job" else set()
    )
    assert {*listed.stdout.split()} == {"/opt:", "duetime", "/opt/duetime:", *environment}
    assert listed.stderr.count("Permission denied") == 2
