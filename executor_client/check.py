"""``python -m executor_client check``: check admin, token, port and folders, one line each."""

import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import requests

from executor_client.admin_client import AdminClient, is_token_refusal, token_advice
from executor_client.config import ExecutorConfig, is_http_url
from executor_client.errors import AdminUnreachable, StartRefused
from executor_client.protocol import CAPABILITIES_HEADER, Reply
from executor_client.server import bound_socket


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    is_fine: bool
    text: str


def check(config: ExecutorConfig) -> Iterator[Finding]:
    """Check everything that a start needs, without changing anything."""
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
    """Call an action that does not exist: admins check the token first, so the reply shows its validity."""
    try:
        admin = AdminClient(address, config, boot_id="check")
        reply = admin.call("check", b"{}")
        admin.close()
    except AdminUnreachable as exc:
        return Finding(False, f"admin {address}: not reachable: {exc.reason}")
    return _judge(address, reply, has_token=bool(config.access_tokens))


def _judge(address: str, reply: Reply, *, has_token: bool) -> Finding:
    text = reply.msg or ""
    if is_token_refusal(text):
        return Finding(False, f"admin {address}: reachable, but {token_advice(has_token=has_token)}")
    if "uri-mapping" in text or "appname" in text.lower():
        return Finding(True, f"admin {address}: reachable, token accepted")
    return Finding(False, f"admin {address}: no XXL-JOB admin at this path ({text[:120]})")


def _check_port(config: ExecutorConfig) -> Finding:
    try:
        bound: socket.socket = bound_socket(config.host, config.port)
    except StartRefused as exc:
        if _is_executor(config):
            return Finding(
                True,
                f"port: {config.host}:{config.port} is in use by a running executor; fine if it is this one",
            )
        return Finding(False, f"port: {exc}")
    bound.close()
    return Finding(True, f"port: {config.host}:{config.port} is free")


def _is_executor(config: ExecutorConfig) -> bool:
    """Return whether an executor of this package is running on the configured port."""
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
            return Finding(True, f"{name}: {folder} is writable")
    except OSError as exc:
        return Finding(False, f"{name}: {folder} is not writable: {exc.strerror}")


def _existing(folder: Path) -> Path:
    """Return the folder or its nearest existing ancestor; raise OSError if it cannot be determined."""
    path = folder.absolute()
    while path != path.parent:
        try:
            path.stat()
            break
        except (FileNotFoundError, NotADirectoryError):
            path = path.parent
    return path
