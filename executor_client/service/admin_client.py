"""Admin client: calls an admin's ``/api`` to register and to report results. Not thread-safe."""

import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import urllib3
from urllib3.exceptions import HTTPError

from executor_client.config.config import ExecutorConfig, without_user
from executor_client.handlers.schemas import NO_SCHEMAS, Schemas
from executor_client.service.http_pool import is_timeout, open_pool, user_headers
from executor_client.wire.callbacks import CallbackItem, callback_body
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.errors import AdminUnreachable
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import (
    APPNAME_HEADER,
    CAPABILITIES_HEADER,
    CONTENT_TYPE,
    FAIL,
    HANDLERS_HEADER,
    MSG_BAD_TOKEN,
    MSG_NO_TOKEN,
    REGISTRY_GROUP,
    SUCCESS,
    TOKEN_HEADER,
    RegistryRequest,
    Reply,
    to_handlers_header,
)
from executor_client.wire.run_reports import CONSOLE_HEADER, NO_GROUP, SEND_SCHEMAS
from executor_client.wire.version import VERSION

#: longest response read, in bytes
ANSWER_MAX_BYTES = 64 * 1024

#: text in a library's error -> explanation
_BROKEN_ANSWERS = {
    "ConnectionResetError": "the connection was closed without a response",
    "RemoteDisconnected": "the connection was closed without a response",
    "IncompleteRead": "the connection was closed in the middle of the response",
    "BadStatusLine": "the server at this address does not speak HTTP",
    "WRONG_VERSION_NUMBER": "no TLS is spoken there; the address may begin with http:",
}
#: messages that refuse the token; the last one is of a 3.5 admin
_TOKEN_REFUSALS = (MSG_BAD_TOKEN, MSG_NO_TOKEN, "accessToken or appname ")
#: how a 3.5 admin rejects an array of results, and an older admin the object
_SHAPE_COMPLAINT = re.compile(
    r"(expected|cannot deserialize|can not cast|begin_).{0,80}(object|array)", re.IGNORECASE | re.DOTALL
)

logger = logging.getLogger(__name__)


class AdminClient:
    """Client of one admin address, context path included.

    ``consoles`` is shared by the clients of all threads: address -> CONSOLE_HEADER of a console of this
    project, empty for an XXL-JOB admin.
    """

    def __init__(
        self,
        address: str,
        config: ExecutorConfig,
        boot_id: str,
        consoles: dict[str, frozenset[str]] | None = None,
    ) -> None:
        #: without user and password, which are sent as a header, because it is logged and shown
        self.address = without_user(address).rstrip("/")
        self._capabilities = Capabilities.of_client(boot_id, VERSION)
        self._consoles = {} if consoles is None else consoles
        self._timeout_s = config.timing.admin_timeout_s
        self._callback_as_object = False
        self._pool: urllib3.PoolManager | None = None
        self._headers = {
            **user_headers(address),
            "Content-Type": CONTENT_TYPE,
            "User-Agent": "xxl-job-executor-python",
            # Always present, because 3.3.0 and 3.3.1 require the header.
            TOKEN_HEADER: config.access_tokens[0] if config.access_tokens else "",
            APPNAME_HEADER: config.appname.encode().decode("latin-1"),  # urllib3 sends latin-1
            CAPABILITIES_HEADER: self._capabilities.to_header(),
        }

    @property
    def _console(self) -> frozenset[str]:
        return self._consoles.get(self.address, frozenset())

    @property
    def has_no_group(self) -> bool:
        """Whether this is a console of this project without an executor group for the AppName."""
        return NO_GROUP in self._console

    def register(
        self, appname: str, address: str, handlers: Iterable[str] = (), schemas: Schemas = NO_SCHEMAS
    ) -> Reply:
        """Register this executor and announce its handlers; raise AdminUnreachable.

        A console of this project gets the digest of the schemas, and the schemas themselves on request.
        """
        request = RegistryRequest(REGISTRY_GROUP, appname, address)
        headers = {HANDLERS_HEADER: to_handlers_header(handlers)}
        has_announced = bool(schemas.digest and self._console)
        if has_announced:
            headers[CAPABILITIES_HEADER] = replace(self._capabilities, schemas=schemas.digest).to_header()
        reply = self.call("registry", dump_json(request.to_wire()), headers)
        if schemas.digest and self._console and not has_announced:
            return self.register(appname, address, handlers, schemas)
        if has_announced and SEND_SCHEMAS in self._console:
            request = replace(request, schemas=schemas.by_handler)
            reply = self.call("registry", dump_json(request.to_wire()), headers)
        return reply

    def remove(self, appname: str, address: str) -> Reply:
        """Deregister this executor; raise AdminUnreachable."""
        return self.call(
            "registryRemove", dump_json(RegistryRequest(REGISTRY_GROUP, appname, address).to_wire())
        )

    def callback(self, items: list[CallbackItem]) -> Reply:
        """Report results, in the form that this admin accepts; raise AdminUnreachable."""
        was_console = bool(self._console)
        reply = self._callback(items, as_object=self._callback_as_object, with_reports=was_console)
        if reply.code == FAIL and _SHAPE_COMPLAINT.search(reply.msg or ""):
            as_object = not self._callback_as_object
            other = self._callback(items, as_object=as_object, with_reports=bool(self._console))
            if other.code == SUCCESS:
                self._callback_as_object = not self._callback_as_object
                return other
        if self._console and not was_console and any(item.has_reports for item in items):
            return self._callback(items, as_object=self._callback_as_object, with_reports=True)
        return reply

    def _callback(self, items: list[CallbackItem], *, as_object: bool, with_reports: bool) -> Reply:
        return self.call("callback", callback_body(items, as_object=as_object, with_reports=with_reports))

    def call(self, action: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        """POST to ``/api/<action>`` and return the reply; raise AdminUnreachable without a response."""
        try:
            return self._post(f"{self.address}/api/{action}", body, {**self._headers, **(headers or {})})
        except (HTTPError, ValueError, OSError) as exc:
            raise AdminUnreachable(self.address, _reason(exc)) from exc

    def _post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        if self._pool is None:  # with the CA bundle that Python's ssl module uses, for an admin behind TLS
            self._pool = open_pool(os.environ.get("SSL_CERT_FILE"))
        response = self._pool.request(
            "POST",
            url,
            body=body,
            headers=headers,
            timeout=self._timeout_s,
            redirect=False,
            retries=False,
            preload_content=False,
        )
        try:
            content = _read_bounded(response)
        finally:
            response.close()  # a connection with unread data cannot be reused
        if target := response.get_redirect_location():
            return Reply(FAIL, f"HTTP status {response.status}: redirected to {target}; check the path")
        reply = Reply.parse(response.status, content)
        if reply.code == SUCCESS:
            words = response.headers.get(CONSOLE_HEADER, "").split(",")
            self._consoles[self.address] = frozenset(filter(None, map(str.strip, words)))
        return reply

    def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            self._pool.clear()


def is_token_refusal(message: str) -> bool:
    """Return whether an admin's message refuses the token."""
    return any(text in message for text in _TOKEN_REFUSALS)


def token_advice(*, has_token: bool) -> str:
    """Return the problem with the token and its solution, for messages about a refusal."""
    if has_token:
        return "the access token is wrong: XXL_JOB_ACCESS_TOKEN must be the admin's, or the executor group's"
    return "no access token given: set XXL_JOB_ACCESS_TOKEN to the admin's"


def _read_bounded(response: urllib3.BaseHTTPResponse) -> bytes:
    content = b""
    for piece in response.stream(8_192):
        content += piece
        if len(content) > ANSWER_MAX_BYTES:
            break
    return content


def _reason(error: Exception) -> str:
    """Return why a call failed, without the library's wrapping."""
    text = str(error)
    if is_timeout(error):
        return "no response in time"
    explanation = next((meaning for word, meaning in _BROKEN_ANSWERS.items() if word in text), "")
    match = re.search(r"\[(?:Errno -?\d+|SSL: \w+)\] ([^'()\"]+)", text)
    return explanation or (match.group(1).strip() if match else text[:200])
