"""HTTP to the OpenID provider: verified TLS, no proxies, no redirects, bounded time and size, one attempt."""

import ssl
import time
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from app.compat import set_content

#: seconds to connect, and without a byte of the answer
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 5.0
#: seconds until the body of an answer is complete
BODY_TIMEOUT_S = 5.0
#: bytes of the body of an answer
ANSWER_MAX = 512 * 1024
CHUNK = 16 * 1024


def secure(http: requests.Session) -> None:
    """Bind a session to the rules of this module, whatever its calls request."""
    http.trust_env = False
    http.max_redirects = 0
    adapter = _LimitedAdapter(max_retries=0)
    http.mount("https://", adapter)
    http.mount("http://", adapter)


class _LimitedAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Trust the authorities of the system too, such as a company's own."""
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context(), **options)

    def send(self, request: requests.PreparedRequest, *_args: Any, **_options: Any) -> requests.Response:
        """Send a request and read its whole answer; raises RequestException."""
        response = super().send(
            request, stream=True, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S), verify=True, proxies={}
        )
        with response:
            set_content(response, _read(response))
        return response


def _read(response: requests.Response) -> bytes:
    until = time.monotonic() + BODY_TIMEOUT_S
    body = bytearray()
    try:
        while part := response.raw.read1(CHUNK, decode_content=True):
            body += part
            if len(body) > ANSWER_MAX:
                raise requests.RequestException(f"the answer is longer than {ANSWER_MAX} bytes")
            if time.monotonic() > until:
                raise requests.Timeout("the answer takes too long")
    except HTTPError as exc:
        raise requests.ConnectionError(exc) from exc
    return bytes(body)
