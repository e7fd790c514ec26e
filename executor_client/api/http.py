"""HTTP transport: requests with a bearer token."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError

from executor_client.api.credentials import console_url, is_loopback
from executor_client.api.errors import ApiUnreachable
from executor_client.api.transport import BASE_PATH, Answer, Request
from executor_client.service.http_pool import is_timeout, open_pool, proxy_of_environment
from executor_client.wire.version import VERSION

CONNECT_S = 10.0
PIECE_BYTES = 8_192
#: variables with the path of a CA bundle; the first one that is set applies
AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class HttpTransport:
    """Transport to the address of a console: ``https://jobs.example.com/xxl-job-admin``."""

    def __init__(self, url: str, token: str) -> None:
        self.address = console_url(url)
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": f"duetime/{VERSION}"}
        self._manager: urllib3.PoolManager | None = None

    def send(self, request: Request) -> Answer:
        """Send a request; redirects are not followed, so that the token stays with this address."""
        query = request.encoded_query()
        body = request.encoded_body()
        headers = {
            "Accept": "application/json, application/problem+json",
            "Accept-Encoding": "gzip, deflate",
            **request.headers,
            **self._headers,
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        with self._as_unreachable():
            response = self._pool().request(
                request.method,
                self.address + BASE_PATH + request.path + (f"?{query}" if query else ""),
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_S, read=request.timeout_s),
                redirect=False,
                retries=False,
                preload_content=False,
            )
        if target := response.get_redirect_location():
            response.close()
            raise ApiUnreachable(
                self.address, f"redirected to {target}; use the address of the console itself"
            )
        names = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, names, self._pieces(response), response.close)

    def _pool(self) -> urllib3.PoolManager:
        """Return the pool, with CA bundle and proxy of the environment, but without a proxy to this host."""
        if self._manager is None:
            paths = (os.environ.get(name) for name in AUTHORITIES)
            proxy = None if is_loopback(self.address) else proxy_of_environment(self.address)
            self._manager = open_pool(next(filter(None, paths), None), proxy)
        return self._manager

    def _pieces(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        with self._as_unreachable():
            yield from response.stream(PIECE_BYTES)  # a chunk as soon as it arrives

    @contextmanager
    def _as_unreachable(self) -> Iterator[None]:
        try:
            yield
        except (HTTPError, ValueError, OSError) as exc:
            raise ApiUnreachable(self.address, _reason(exc)) from exc

    def close(self) -> None:
        """Close the connections."""
        if self._manager is not None:
            self._manager.clear()


def _reason(error: Exception) -> str:
    """Return why a request failed, without the library's wrapping."""
    text = str(error)
    if is_timeout(error):
        is_early = isinstance(error, ConnectTimeoutError)
        return f"no connection within {CONNECT_S:.0f} s" if is_early else "no answer in time"
    if "WRONG_VERSION_NUMBER" in text:
        return "no TLS is spoken there; the address may begin with http:"
    match = re.search(r"\[(?:Errno -?\d+|SSL: \w+)\] ([^'()\"]+)", text)
    if match:
        return match.group(1).strip()
    if "RemoteDisconnected" in text or "IncompleteRead" in text or "Connection reset" in text:
        return "the connection was closed before the answer was complete"
    return text[:200]
