"""``python -m executor_client check``: tries admin, token, port and folders, and says in a line each what is wrong."""

import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import requests

from executor_client.admin_client import AdminClient
from executor_client.config import ExecutorConfig, is_http_url
from executor_client.errors import AdminUnreachable, StartRefused
from executor_client.protocol import CAPABILITIES_HEADER, Reply
from executor_client.server import bound_socket


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried."""

    is_fine: bool
    text: str


def check(config: ExecutorConfig) -> Iterator[Finding]:
    """Try everything a start needs; changes nothing anywhere."""
    try:
        config.check()
        yield Finding(True, f"settings: app name {config.appname}")
    except StartRefused as exc:
        yield Finding(False, f"settings: {exc}")
    for address in filter(is_http_url, config.admin_addresses):
        yield _check_admin(address, config)
    yield _check_port(config)
    for name, folder in (("XXL_JOB_HOME", config.home), ("log path", config.log_root)):
        yield _check_folder(name, folder)


def _check_admin(address: str, config: ExecutorConfig) -> Finding:
    """Ask for an action that does not exist: the admin looks at the token first, so its answer tells what it thinks of it."""
    try:
        admin = AdminClient(address, config, boot_id="check")
        reply = admin.call("check", b"{}")
        admin.close()
    except AdminUnreachable as exc:
        return Finding(False, f"admin {address}: not reachable: {exc.reason}")
    return _judge(address, reply, has_token=bool(config.access_tokens))


def _judge(address: str, reply: Reply, *, has_token: bool) -> Finding:
    text = reply.msg or ""
    lowered = text.lower()
    if "token" in lowered:
        problem = (
            "it refuses the token: XXL_JOB_ACCESS_TOKEN must be"
            if has_token
            else "it wants a token: set XXL_JOB_ACCESS_TOKEN to"
        )
        return Finding(False, f"admin {address}: reachable, but {problem} the admin's")
    if "uri-mapping" in lowered or "appname" in lowered:
        return Finding(True, f"admin {address}: reachable, token accepted")
    return Finding(False, f"admin {address}: no XXL-JOB admin answers at this path ({text[:120]})")


def _check_port(config: ExecutorConfig) -> Finding:
    try:
        bound: socket.socket = bound_socket(config.host, config.port)
    except StartRefused as exc:
        if _is_executor(config):
            return Finding(
                True,
                f"port: {config.host}:{config.port} is served by an executor of this kind, fine if it is this one",
            )
        return Finding(False, f"port: {exc}")
    bound.close()
    return Finding(True, f"port: {config.host}:{config.port} is free")


def _is_executor(config: ExecutorConfig) -> bool:
    """Tell whether an executor of this kind answers at the configured port: ``check`` is asked beside a running one too."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)
    url = f"http://{f'[{host}]' if ':' in host else host}:{config.port}/beat"
    try:
        with requests.Session() as session:
            session.trust_env = False
            timeout_s = config.timing.admin_timeout_s
            with session.post(url, timeout=timeout_s, allow_redirects=False, stream=True) as response:
                return CAPABILITIES_HEADER in response.headers
    except (requests.RequestException, ValueError, OSError):
        return False


def _check_folder(name: str, folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)):
            return Finding(True, f"{name}: {folder} can be written")
    except OSError as exc:
        return Finding(False, f"{name}: {folder} cannot be written: {exc.strerror}")


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists; raise OSError where that cannot be told."""
    path = folder.absolute()
    while path != path.parent:
        try:
            path.stat()
            break
        except (FileNotFoundError, NotADirectoryError):
            path = path.parent
    return path
