"""``python -m executor_client check``: check admin, token, group, address, port and folders, one line each.

While it runs, the check answers on the executor's port, so that the console can call the address back. On the
port of an application it cannot.
"""

import http.client
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from executor_client.config.config import ExecutorConfig, is_http_url
from executor_client.mounting.own_server import OwnServer
from executor_client.service.admin_client import AdminClient, is_token_refusal, token_advice
from executor_client.service.engine import registered_address
from executor_client.wire.errors import AdminUnreachable, StartRefused
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import (
    CAPABILITIES_HEADER,
    CONTENT_TYPE,
    FAIL,
    REGISTRY_GROUP,
    SUCCESS,
    RegistryRequest,
    Reply,
)
from executor_client.wire.registration_check import CHECK_ACTION, RegistrationCheck

#: the console's call back takes up to 3 s
CHECK_TIMEOUT_S = 8.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    is_fine: bool
    text: str


def check(config: ExecutorConfig, mount_prefix: str | None = None) -> Iterator[Finding]:
    """Check everything that a start needs, without changing anything. ``mount_prefix`` is as in Executor."""
    try:
        config.check()
        yield Finding(True, f"settings: app name {config.appname}")
    except StartRefused as exc:
        yield Finding(False, f"settings: {exc}")
    port: list[Finding] = []
    timing = replace(config.timing, admin_timeout_s=max(CHECK_TIMEOUT_S, config.timing.admin_timeout_s))
    port_context: AbstractContextManager[int | None] = nullcontext(config.port)
    with _port(config, port) if mount_prefix is None else port_context as number:
        for url in filter(is_http_url, config.admin_addresses):
            try:
                address = registered_address(config, number, mount_prefix or "")
            except StartRefused as exc:
                yield Finding(False, f"address: {exc}")
                break
            admin = AdminClient(url, replace(config, timing=timing), boot_id="check")
            yield from _check_admin(admin, config, address)
        yield from port
    for name, folder in (("XXL_JOB_HOME", config.home), ("log path", config.log_root)):
        yield _check_folder(name, folder)


def _check_admin(admin: AdminClient, config: ExecutorConfig, address: str) -> Iterator[Finding]:
    """Request the check, an extension of this project's console.

    Other admins check the token first, then reject the action by name, which shows that the token is valid.
    """
    body = dump_json(RegistryRequest(REGISTRY_GROUP, config.appname, address).to_wire())
    try:
        # Without an app name only the token can be checked, which any other action does.
        reply = admin.call(CHECK_ACTION if config.appname.strip() else "check", body)
    except AdminUnreachable as exc:
        yield Finding(False, f"admin {admin.address}: not reachable: {exc.reason}")
        return
    finally:
        admin.close()
    registration = RegistrationCheck.from_wire(reply.content) if reply.code == SUCCESS else None
    if registration is None:
        yield from _judge(admin.address, reply, config, address)
        return
    yield Finding(True, f"admin {admin.address}: reachable, token accepted")
    yield _judge_group(registration, config.appname)
    yield _judge_address(registration, address)


def _judge(admin: str, reply: Reply, config: ExecutorConfig, address: str) -> Iterator[Finding]:
    """Judge a reply without a check: a refusal, or an admin that is not of this project."""
    text = reply.msg or ""
    if is_token_refusal(text):
        advice = token_advice(has_token=bool(config.access_tokens))
        yield Finding(False, f"admin {admin}: reachable, but {advice}")
    elif "uri-mapping" in text or "appname" in text.lower():
        yield Finding(True, f"admin {admin}: reachable, token accepted")
        if not config.appname.strip():
            return
        remark = "not verified, this admin has no check for it"
        yield Finding(True, f"group of app name {config.appname}: {remark}")
        yield Finding(True, f"address {address}: {remark}")
    elif "refused" in text or "too many" in text:
        yield Finding(False, f"admin {admin}: reachable, token accepted, but {text[:300]}")
    else:
        yield Finding(False, f"admin {admin}: no XXL-JOB admin at this path ({text[:120]})")


def _judge_group(registration: RegistrationCheck, appname: str) -> Finding:
    if not registration.has_group:
        return Finding(
            False,
            f"group: the console has no executor group with the app name {appname}:"
            " add one on its page Executors, or correct the app name",
        )
    if not registration.is_listed:
        return Finding(
            False,
            f"group: {appname} has a list of addresses entered by hand, and this one is not on it:"
            " add it, or set the group to automatic",
        )
    return Finding(True, f"group: {appname}")


def _judge_address(registration: RegistrationCheck, address: str) -> Finding:
    if not registration.was_called:
        return Finding(True, f"address {address}: not verified, the console sends no runs to it")
    if registration.problem:
        return Finding(
            False,
            f"address {address}: the console cannot use it: {registration.problem};"
            " set XXL_JOB_EXECUTOR_ADDRESS to a URL that it reaches",
        )
    return Finding(True, f"address {address}: the console reaches it")


@contextmanager
def _port(config: ExecutorConfig, findings: list[Finding]) -> Iterator[int]:
    """Answer on the configured port during the block, unless an executor does; yield the port."""
    endpoint = f"{config.host}:{config.listen_port}"
    try:
        server = OwnServer(_beats, config.host, config.listen_port)
    except StartRefused as exc:
        message = f"port: {endpoint} is in use by a running executor; fine if it is this one"
        is_running = _is_executor(config)
        findings.append(Finding(True, message) if is_running else Finding(False, f"port: {exc}"))
        yield config.listen_port
        return
    findings.append(Finding(True, f"port: {endpoint} is free"))
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def _beats(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Answer ``/beat`` as an executor does, and nothing else: a WSGI application."""
    is_beat = environ["PATH_INFO"].endswith("/beat")
    body = dump_json((Reply(SUCCESS) if is_beat else Reply(FAIL, "only a check is running")).to_wire())
    start_response("200 OK", [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body)))])
    return [body]


def _is_executor(config: ExecutorConfig) -> bool:
    """Return whether an executor of this package is running on the configured port."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)
    connection = http.client.HTTPConnection(host, config.listen_port, timeout=config.timing.admin_timeout_s)
    try:
        connection.request("POST", "/beat")
        return CAPABILITIES_HEADER in connection.getresponse().headers
    except (http.client.HTTPException, ValueError, OSError):
        return False
    finally:
        connection.close()


def _check_folder(name: str, folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=_nearest_existing(folder)):
            return Finding(True, f"{name}: {folder} is writable")
    except OSError as exc:
        return Finding(False, f"{name}: {folder} is not writable: {exc.strerror}")


def _nearest_existing(folder: Path) -> Path:
    """Return the folder or its nearest existing ancestor; raise OSError if it cannot be determined."""
    path = folder.absolute()
    while path != path.parent:
        try:
            path.stat()
            break
        except (FileNotFoundError, NotADirectoryError):
            path = path.parent
    return path
