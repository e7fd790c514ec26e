"""``python -m executor_client check``: its findings, and that it changes nothing."""

import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor_client import Executor, ExecutorConfig, HandlerRegistry
from executor_client.__main__ import main
from tests.acceptance.programs import free_port
from tests.executor_client.process import command
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin


class Answering(threading.Thread):
    """Server that accepts one connection, sends a fixed response and closes."""

    def __init__(self, server: socket.socket, answer: bytes) -> None:
        super().__init__()
        self._server = server
        self._answer = answer

    def run(self) -> None:
        connection, _peer = self._server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(self._answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):  # closed with a part of the request unread, it would be reset
                pass

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *error: object) -> None:
        self.join(10)


ONE_JOB = "from executor_client import Executor, job\n@job('a')\ndef a(): ..."
A_PROGRAM = "Executor.from_env(admin_addresses=('http://127.0.0.1:1/x',), appname='mine', port=0)"


def lines_of(home: Path, admin: str, *options: str, **environment: str) -> tuple[int, list[str]]:
    return lines_without_port(home, admin, "--port", str(free_port()), *options, **environment)


def lines_without_port(home: Path, admin: str, *options: str, **environment: str) -> tuple[int, list[str]]:
    settings: dict[str, Any] = {"XXL_JOB_ACCESS_TOKEN": TOKEN, **environment}
    ended = command(home, "check", "--admin", admin, "--appname", "a", *options, **settings)
    assert ended.stderr == ""
    return ended.returncode, ended.stdout.splitlines()


def test_check_without_problems(tmp_path: Path, admin: StandInAdmin) -> None:
    code, lines = lines_of(tmp_path, admin.url)
    assert code == 0
    assert all(line.startswith("ok ") for line in lines)
    assert any("token accepted" in line for line in lines)
    assert sum("not verified, this admin has no check for it" in line for line in lines) == 2
    assert list(tmp_path.iterdir()) == []
    assert admin.bodies("registry") == admin.bodies("registryRemove") == []


def test_check_needs_no_standard_output(
    tmp_path: Path, admin: StandInAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XXL_JOB_ACCESS_TOKEN", TOKEN)
    monkeypatch.setattr(sys, "stdout", None)
    options = ["--admin", admin.url, "--appname", "a", "--port", str(free_port()), "--home", str(tmp_path)]
    assert main(["check", *options]) == 0


@pytest.mark.parametrize(
    ("path", "token", "expected"),
    [
        ("", "wrong-token-0123456789", "the access token is wrong: XXL_JOB_ACCESS_TOKEN must be the admin's"),
        ("", "", "no access token given: set XXL_JOB_ACCESS_TOKEN to the admin's"),
        ("/nope", TOKEN, "no XXL-JOB admin at this path"),
    ],
)
def test_admin_problems_are_reported(
    tmp_path: Path, admin: StandInAdmin, path: str, token: str, expected: str
) -> None:
    code, lines = lines_of(tmp_path, admin.url + path, XXL_JOB_ACCESS_TOKEN=token)
    assert code == 1
    assert [expected in line for line in lines if line.startswith("PROBLEM")] == [True]


def test_without_an_app_name_nothing_is_said_of_its_group(tmp_path: Path, admin: StandInAdmin) -> None:
    code, lines = lines_of(tmp_path, admin.url, "--appname", " ")
    assert (code, len(problems(lines))) == (1, 1)
    assert not any("not verified" in line for line in lines)


def test_an_unreachable_admin_is_reported(tmp_path: Path) -> None:
    code, lines = lines_of(tmp_path, "http://127.0.0.1:1/x")
    assert (code, problems(lines)) == (
        1,
        ["PROBLEM admin http://127.0.0.1:1/x: not reachable: Connection refused"],
    )


def test_an_invalid_address_is_reported_once(tmp_path: Path) -> None:
    code, lines = lines_of(tmp_path, "127.0.0.1:8080/x")
    assert (code, problems(lines)) == (
        1,
        ["PROBLEM settings: '127.0.0.1:8080/x' is not a URL: http://host:port/ is expected"],
    )


def test_a_port_in_use_is_reported(tmp_path: Path, admin: StandInAdmin) -> None:
    port_in_use = admin.url.removeprefix("http://").partition("/")[0]
    code, lines = lines_of(tmp_path, admin.url, "--port", port_in_use.partition(":")[2])
    assert (code, problems(lines)) == (
        1,
        [f"PROBLEM port: cannot listen on {port_in_use}: the port is in use by another program"],
    )


def test_a_running_executor_is_not_a_problem(
    tmp_path: Path, admin: StandInAdmin, config: Callable[..., ExecutorConfig], handlers: HandlerRegistry
) -> None:
    with Executor(config(), handlers) as executor:
        port = executor.address.rstrip("/").rpartition(":")[2]
        code, lines = lines_of(tmp_path, admin.url, "--port", port)
    assert (code, problems(lines)) == (0, [])
    assert f"ok      port: 127.0.0.1:{port} is in use by a running executor; fine if it is this one" in lines


@pytest.mark.parametrize(
    ("home", "reason"),
    [
        ("file", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("loop", "Too many levels of symbolic links"),
    ],
)
def test_unwritable_folders_are_reported(tmp_path: Path, admin: StandInAdmin, home: str, reason: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    code, lines = lines_of(tmp_path, admin.url, "--home", home)
    named = [
        f"PROBLEM {name} is not writable: {reason}"
        for name in (f"XXL_JOB_HOME: {home}", f"log path: {home}/executor-logs")
    ]
    assert (code, problems(lines)) == (1, named)


def test_an_invalid_host_is_reported(tmp_path: Path, admin: StandInAdmin) -> None:
    code, lines = lines_of(tmp_path, admin.url, "--host", "a..b")
    (line,) = problems(lines)
    assert code == 1
    assert line.startswith("PROBLEM port: cannot listen on a..b:")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "the connection was closed without a response"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the server at this address does not speak HTTP"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
            "the connection was closed in the middle of the response",
        ),
    ],
)
def test_a_server_that_does_not_speak_http_is_reported(tmp_path: Path, answer: bytes, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Answering(server, answer):
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        code, lines = lines_of(tmp_path, url)
    assert (code, problems(lines)) == (1, [f"PROBLEM admin {url}: not reachable: {reason}"])


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        (
            "from executor_client import job\n@job('b')\ndef b(): ...\n@job('a')\ndef a(): ...",
            0,
            "ok      handlers: a, b",
        ),
        ("", 1, "PROBLEM handlers: none in mine"),
        (
            f"{ONE_JOB}\nimport sys\nsys.exit(3)",
            1,
            "PROBLEM handlers: cannot import mine: SystemExit: 3 (mine.py:5)",
        ),
        (f"{ONE_JOB}\n{A_PROGRAM}.run()\n1 // 0", 0, "ok      handlers: a"),
        (f"{ONE_JOB}\nwith {A_PROGRAM}:\n    1 // 0", 0, "ok      handlers: a"),
        (
            "1 / 0",
            1,
            "PROBLEM handlers: cannot import mine: ZeroDivisionError: division by zero (mine.py:1)",
        ),
    ],
)
def test_modules_are_imported_by_check(
    tmp_path: Path, admin: StandInAdmin, source: str, code: int, line: str
) -> None:
    (tmp_path / "mine.py").write_text(source + "\n")
    ended, lines = lines_of(tmp_path, admin.url, "mine")
    assert (ended, lines[-1]) == (code, line)
    assert admin.bodies("registry") == []


MOUNTED = "Executor.from_env({}).wsgi_app(None, '/jobs')"


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ("", "", "PROBLEM address: mounted on an application, and its address is not known"),
        ("port=5000", "", "ok      address http://127.0.0.1:5000/jobs/: "),
        ("address='http://127.0.0.1:8000/x/'", "", "ok      address http://127.0.0.1:8000/x/: "),
        ("", "--address http://127.0.0.1:8000/x/", "ok      address http://127.0.0.1:8000/x/: "),
        ("port=5000", "--port 6000", "ok      address http://127.0.0.1:6000/jobs/: "),
        ("port=5000", "--host ::1", "ok      address http://[::1]:5000/jobs/: "),
    ],
)
def test_check_follows_a_module_that_mounts_its_executor(
    tmp_path: Path, admin: StandInAdmin, settings: str, options: str, expected: str
) -> None:
    (tmp_path / "mine.py").write_text(f"{ONE_JOB}\n{MOUNTED.format(settings)}\n")
    code, lines = lines_without_port(tmp_path, admin.url, *options.split(), "mine")
    assert code == expected.startswith("PROBLEM")
    assert any(line.startswith(expected) for line in lines)
    assert not any("port:" in line for line in lines)


def problems(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("ok ")]
