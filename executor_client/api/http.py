"""HTTP transport: requests with a bearer token."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from executor_client.api.address import console_url, is_loopback
from executor_client.api.errors import ApiUnreachable
from executor_client.api.transport import BASE_PATH, Answer, Request
from executor_client.version import VERSION

CONNECT_S = 10.0
PIECE_BYTES = 8_192


class HttpTransport:
    """Transport to the address of a console: ``https://jobs.example.com/xxl-job-admin``."""

    def __init__(self, url: str, token: str) -> None:
        self.address = console_url(url)
        self._http = requests.Session()
        # proxies and authorities of the environment count, but never a proxy for this host
        self._http.trust_env = not is_loopback(self.address)
        self._http.auth = _Bearer(token)  # an auth of its own: otherwise ~/.netrc would replace the token
        self._http.headers["User-Agent"] = f"xxl/{VERSION}"

    def send(self, request: Request) -> Answer:
        """Send a request; redirects are not followed, so that the token stays with this address."""
        query = request.encoded_query()
        body = request.encoded_body()
        headers = {"Accept": "application/json, application/problem+json", **request.headers}
        if body is not None:
            headers["Content-Type"] = "application/json"
        with self._as_unreachable():
            response = self._http.request(
                request.method,
                self.address + BASE_PATH + request.path + (f"?{query}" if query else ""),
                data=body,
                headers=headers,
                timeout=(CONNECT_S, request.timeout_s),
                allow_redirects=False,
                stream=True,
            )
        if response.is_redirect:
            response.close()
            target = response.headers["Location"]
            raise ApiUnreachable(
                self.address, f"redirected to {target}; use the address of the console itself"
            )
        names = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status_code, names, self._pieces(response), response.close)

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        with self._as_unreachable():
            # a chunk of a stream as soon as it arrives
            size = None if response.headers.get("Transfer-Encoding") == "chunked" else PIECE_BYTES
            yield from response.iter_content(size)

    @contextmanager
    def _as_unreachable(self) -> Iterator[None]:
        try:
            yield
        except (requests.RequestException, ValueError) as exc:
            raise ApiUnreachable(self.address, _reason(exc)) from exc

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class _Bearer(requests.auth.AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _reason(error: Exception) -> str:
    """Return why a request failed, without the library's wrapping."""
    text = str(error)
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {CONNECT_S:.0f} s"
    if isinstance(error, requests.Timeout) or "Read timed out" in text:
        return "no answer in time"
    if "WRONG_VERSION_NUMBER" in text:
        return "no TLS is spoken there; the address may begin with http:"
    found = re.search(r"\[(?:Errno -?\d+|SSL: \w+)\] ([^'()\"]+)", text)
    if found:
        return found.group(1).strip()
    if "RemoteDisconnected" in text or "IncompleteRead" in text or "Connection reset" in text:
        return "the connection was closed before the answer was complete"
    return text[:200]
