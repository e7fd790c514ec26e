"""Stand-ins for the programs of root in documented commands: ``main`` is run under the name of each.

``DOCUMENTED_ROOT`` is the folder that holds what would be in ``/``. ``systemctl`` checks the units by
``systemd-analyze verify`` where it is installed, and runs what they name.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

#: programs that have a stand-in
NAMES = ("sudo", "id", "useradd", "install", "python3", "systemctl")
PAUSE = threading.Event()
#: seconds for a service to be ready, and to end
START_S, STOP_S = 60, 30
#: paths of the documentation that lie below the folder here
PLACES = re.compile(r"(?<![\w/.])/(etc|opt|var|usr/local)/")


def mapped(text: str, root: Path) -> str:
    """Return a text with its paths below the folder ``root``."""
    return PLACES.sub(lambda found: f"{root}/{found[1]}/", text)


def here() -> Path:
    """Return the folder that holds what would be in ``/``."""
    return Path(os.environ["DOCUMENTED_ROOT"])


def unit(name: str) -> Path:
    """Return the file of a service."""
    return here() / f"etc/systemd/system/{name}.service"


def sudo(arguments: list[str]) -> int:
    while arguments and arguments[0].startswith("-"):
        arguments = arguments[2 if arguments[0] == "-u" else 1 :]
    code = subprocess.call(arguments)
    if Path(arguments[0]).name == "pip" and code == 0:
        map_units()
    return code


def install(arguments: list[str]) -> int:
    """Install without changing owners, which only root can."""
    kept, skip = [], False
    for argument in arguments:
        if not skip and argument not in ("-o", "-g"):
            kept.append(argument)
        skip = argument in ("-o", "-g")
    target = Path(kept[-1])
    target.parent.mkdir(parents=True, exist_ok=True)
    return subprocess.call(["/usr/bin/install", *kept])


def python3(arguments: list[str]) -> int:
    return subprocess.call([sys.executable, *arguments])


def map_units() -> None:
    """Map the paths of the units and of the program of operators, which pip has just installed."""
    for path in filter(Path.is_file, (here() / "opt/duetime/share/duetime").iterdir()):
        text = mapped(path.read_text(encoding="utf-8"), here())
        command = re.compile(r"(?<=bin/duetime) (?=db|backup|doctor|\"\$@)")
        path.write_text(command.sub(f" --env-file {here()}/etc/xxl-job.env ", text), encoding="utf-8")


def systemctl(arguments: list[str]) -> int:
    verb, *rest = [argument for argument in arguments if not argument.startswith("-")]
    if verb == "daemon-reload":
        return verify(sorted(unit("").parent.glob("*.service")))
    actions = {"enable": start, "start": start, "stop": stop, "is-active": is_active}
    return max(actions[verb](name) for name in rest)


def verify(units: Sequence[Path]) -> int:
    if shutil.which("systemd-analyze") is None:
        return 0
    return subprocess.call(["systemd-analyze", "verify", *map(str, units)])


def settings_of(file: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the environment of a unit, and its entries by name."""
    entries: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            entries.setdefault(name, []).append(value)
    environment = dict(os.environ)
    words = [word for line in entries.get("Environment", []) for word in shlex.split(line)]
    for path in entries.get("EnvironmentFile", []):
        words += Path(path.lstrip("-")).read_text(encoding="utf-8").split()
    return environment | dict(word.split("=", 1) for word in words), entries


def start_timer(name: str) -> int:
    """Run what a timer starts once; the doctor, which ends with 1 then, may have findings."""
    assert unit(name).with_suffix("").is_file()
    environment, entries = settings_of(unit(name.removesuffix(".timer")))
    command = shlex.split(entries["ExecStart"][0])
    ended = subprocess.call(command, cwd=entries["WorkingDirectory"][0], env=environment)
    return 0 if ended == 1 and command[-1] == "doctor" else ended


def start(name: str) -> int:
    if name.endswith(".timer"):
        return start_timer(name)
    environment, entries = settings_of(unit(name))
    folder = entries["WorkingDirectory"][0]
    Path(environment["XXL_JOB_HOME"]).mkdir(mode=0o700, parents=True, exist_ok=True)
    for command in entries.get("ExecStartPre", []):
        subprocess.run(shlex.split(command), cwd=folder, env=environment, check=True)
    with (
        tempfile.TemporaryDirectory() as short,  # the path of a socket has 107 characters at most
        (here() / f"{name}.log").open("ab") as log,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready,
    ):
        notices = f"{short}/notify"
        ready.bind(notices)
        process = subprocess.Popen(
            shlex.split(entries["ExecStart"][0]),
            cwd=folder,
            env=environment | {"NOTIFY_SOCKET": notices},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        (here() / f"{name}.pid").write_text(str(process.pid))
        return await_notice(ready, process)


def await_notice(ready: socket.socket, process: "subprocess.Popen[bytes]") -> int:
    """Wait until a service, which is of ``Type=notify``, reports that it is ready."""
    ready.settimeout(1)
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(TimeoutError):
            if "READY=1" in ready.recv(4096).decode().splitlines():
                return 0
    return 1


def find(name: str) -> psutil.Process | None:
    with suppress(OSError, psutil.NoSuchProcess):
        process = psutil.Process(int((here() / f"{name}.pid").read_text()))
        if process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def stop(name: str) -> int:
    process = find(name)
    if process is not None:
        process.send_signal(signal.SIGTERM)
        until = time.monotonic() + STOP_S
        while find(name) is not None and time.monotonic() < until:
            PAUSE.wait(0.05)
    return int(find(name) is not None)


def is_active(name: str) -> int:
    alive = find(name) is not None
    sys.stdout.write("active\n" if alive else "failed\n")
    return 0 if alive else 3


def main() -> int:
    name = Path(sys.argv[0]).name
    if name == "id":
        sys.stdout.write("xxl-job\n")
        return 0
    if name == "useradd":
        return 0
    return {"sudo": sudo, "install": install, "python3": python3, "systemctl": systemctl}[name](sys.argv[1:])
