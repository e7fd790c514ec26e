"""OpenID provider for attacks: signs what a test wants, and answers as a test wants."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from joserfc import jws
from joserfc.jwk import RSAKey

from app.clock import now_ms

CLIENT_ID, CLIENT_SECRET = "xxl-job", "client-secret-word"


def url64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@cache
def rsa_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


@dataclass
class FakeProvider:
    """State of the provider; a test changes what the next answers contain."""

    issuer: str = ""
    #: claims of the next ID token; None removes a claim
    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    #: changes of the metadata
    metadata: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=lambda: {"alg": "RS256", "kid": "one"})
    signing_kid: str = "one"
    hmac_key: bytes = b""
    published_kids: list[str] = field(default_factory=lambda: ["one"])
    #: path -> (status, headers, body) instead of the answer
    broken: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    #: path -> bytes behind the answer
    padding: dict[str, int] = field(default_factory=dict)
    #: code -> parameters of the authorization request
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def authorize(self, location: str) -> dict[str, str]:
        """Log a user in; return the parameters of the answer to the console."""
        asked = dict(parse_qsl(urlsplit(location).query))
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.issuer}

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        if path == "/.well-known/openid-configuration":
            endpoints = {
                "authorization_endpoint": "/auth",
                "token_endpoint": "/token",
                "jwks_uri": "/keys",
                "end_session_endpoint": "/logout",
            }
            endpoints |= {"userinfo_endpoint": "/userinfo"} if self.userinfo else {}
            found = {name: self.issuer + each for name, each in endpoints.items()}
            return 200, {"issuer": self.issuer, **found, **self.metadata}
        if path == "/keys":
            return 200, {"keys": [rsa_key(kid).as_dict(private=False) for kid in self.published_kids]}
        if path == "/userinfo":
            return 200, self.userinfo
        assert path == "/token"
        return self._token(form, authorization)

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = url64(hashlib.sha256(form["code_verifier"].encode()).digest())
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if (
            asked is None
            or asked.get("code_challenge") != challenge
            or asked.get("code_challenge_method") != "S256"
            or form["redirect_uri"] != asked["redirect_uri"]
            or authorization != f"Basic {basic}"
        ):
            return 400, {"error": "invalid_grant"}
        token = self.id_token(asked["nonce"])
        return 200, {"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": token}

    def id_token(self, nonce: str) -> str:
        now_s = now_ms() // 1000
        claims = {
            "iss": self.issuer,
            "sub": "subject-1",
            "aud": CLIENT_ID,
            "exp": now_s + 300,
            "iat": now_s,
            "nonce": nonce,
            "preferred_username": "ann",
            "groups": [],
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.header["alg"] in ("none", "HS256"):
            return self._forged(claims)
        return jws.serialize_compact(self.header, json.dumps(claims), rsa_key(self.signing_kid), ["RS256"])

    def _forged(self, claims: dict[str, Any]) -> str:
        """Sign with nothing, or with an HMAC of a key that is no secret or not the provider's."""
        text = f"{url64(json.dumps(self.header).encode())}.{url64(json.dumps(claims).encode())}"
        signature = hmac.digest(self.hmac_key, text.encode(), "sha256") if self.hmac_key else b""
        return f"{text}.{url64(signature)}"


@contextmanager
def serving_provider(tls: ssl.SSLContext | None = None) -> Iterator[FakeProvider]:
    """Run a provider on loopback."""
    provider = FakeProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            self._reply({name: values[0] for name, values in parse_qs(body).items()})

        def _reply(self, form: dict[str, str]) -> None:
            provider.requests.append(self.path)
            if self.path in provider.broken:
                status, headers, body = provider.broken[self.path]
            else:
                status, found = provider.answer(self.path, form, self.headers.get("Authorization", ""))
                headers, body = {"Content-Type": "application/json"}, json.dumps(found).encode()
            body += b" " * provider.padding.get(self.path, 0)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, name="provider")
    thread.start()
    provider.issuer = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()
