"""OpenID provider: discovery, authorization URL, code exchange, ID token. All calls to it start here.

Calls are made in the thread of a request, at most CALLS_MAX at a time: a provider that hangs leaves the
other threads to local logins and executors.
"""

import logging
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core.claims import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, ClaimError, InvalidKeyIdError, JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet

from app.domain.access.claims import claim
from app.domain.text.texts import N_
from app.errors import ProviderFault, ProviderUnreachable, SignOnRefused
from app.settings.oidc import OidcConfig, is_safe_url
from app.sign_on.pending import Pending
from app.sign_on.provider_http import secure

logger = logging.getLogger(__name__)

#: calls to the provider in flight; further requests are refused at once
CALLS_MAX = 4
#: metadata and keys are read again after this time
KEPT_S = 3_600
#: keys are read again for an unknown key id or a wrong signature at most this often
KEYS_EVERY_S = 60
#: after a failure the provider is not called for this time
PAUSE_S = 3
#: accepted difference of the clocks, in seconds
LEEWAY_S = 60
BASIC = "client_secret_basic"
#: signatures by a key pair only: never "none", never an HMAC
ALGORITHMS = [
    *(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)),
    "EdDSA",
    "Ed25519",
]
#: raised by libraries for JSON of another shape than expected
SHAPE_ERRORS = (KeyError, TypeError, ValueError, AttributeError)
UNREACHABLE = N_("The identity provider cannot be reached. Try again later, or use a local account.")
INVALID = N_("The identity provider's answer is invalid. The change history has the reason.")


class Provider:
    """Client of one OpenID provider; thread-safe. Its first call is made when a user signs on."""

    def __init__(
        self, config: OidcConfig, *, redirect_uri: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._redirect_uri = redirect_uri
        self._clock = clock
        self._calls = threading.BoundedSemaphore(CALLS_MAX)
        self._lock = threading.Lock()
        self._metadata: dict[str, Any] = {}
        self._metadata_at = 0.0
        self._keys = KeySet([])
        self._keys_at = 0.0
        self._paused_until = 0.0

    def authorization_url(self, pending: Pending) -> str:
        """Return the URL that starts a sign-on. Raises ProviderUnreachable."""
        with self._call():
            endpoint = self._endpoint("authorization_endpoint")
            with self._client() as client:
                url, _state = client.create_authorization_url(
                    endpoint, state=pending.state, code_verifier=pending.verifier, nonce=pending.nonce
                )
        return str(url)

    def redeem(self, code: str, pending: Pending, *, now_s: int) -> dict[str, Any]:
        """Exchange a code for the claims of its user; ``sub`` is a non-empty text.

        Raises SignOnRefused for a code, token or claim that is not valid, and ProviderUnreachable.
        """
        with self._call(), self._client() as client:
            token = self._fetch_token(client, code, pending)
            claims = self._verify(token, pending, now_s=now_s)
            missing = [name for name in self._required_claims() if claim(claims, name) is None]
            if missing and "userinfo_endpoint" in self._metadata:
                extra = self._userinfo(client, str(claims["sub"]))
                claims |= {name: claim(extra, name) for name in missing}
            return claims

    def _required_claims(self) -> tuple[str, ...]:
        """Return the claims to request: roles and groups only where the settings give them a meaning."""
        config = self._config
        has_use = config.admin_values or config.rights
        return (config.username_claim, config.groups_claim) if has_use else (config.username_claim,)

    def logout_url(self, back: str) -> str:
        """Return the URL that ends the provider's session; empty if it has none or cannot be reached."""
        try:
            with self._call():
                if "end_session_endpoint" not in self._read_metadata():
                    return ""
                endpoint = self._endpoint("end_session_endpoint")
        except ProviderUnreachable:
            return ""
        query = urlencode({"client_id": self._config.client_id, "post_logout_redirect_uri": back})
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    def is_issuer(self, issuer: str) -> bool:
        """Whether an answer names this provider; empty: it names none."""
        return issuer in {"", self._config.issuer}

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Hold one of the calls; convert every failure of HTTP and JSON into ProviderUnreachable."""
        if not self._calls.acquire(blocking=False):
            logger.warning("openid provider not called reason=too many calls in flight")
            raise ProviderUnreachable(UNREACHABLE)
        try:
            yield
        except (requests.RequestException, TypeError, ValueError, RecursionError) as exc:
            logger.warning("openid provider unreachable issuer=%s reason=%s", self._config.issuer, exc)
            raise ProviderUnreachable(UNREACHABLE) from exc
        finally:
            self._calls.release()

    def _client(self) -> Any:
        """Return Authlib's client, a ``requests.Session``."""
        methods = self._metadata.get("token_endpoint_auth_methods_supported") or [BASIC]
        method = BASIC if BASIC in methods else "client_secret_post"
        client = OAuth2Session(
            self._config.client_id,
            self._config.client_secret or None,
            token_endpoint_auth_method=method if self._config.client_secret else "none",
            scope=" ".join(self._config.scopes),
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
            leeway=0,
        )
        client.register_client_auth_method((BASIC, _basic))
        secure(client)
        return client

    def _fetch_token(self, client: Any, code: str, pending: Pending) -> Mapping[str, Any]:
        address = self._endpoint("token_endpoint")
        with _provider_errors("code"):
            token: Mapping[str, Any] = client.fetch_token(
                address, grant_type="authorization_code", code=code, code_verifier=pending.verifier
            )
        return token

    def _verify(self, token: Mapping[str, Any], pending: Pending, *, now_s: int) -> dict[str, Any]:
        """Return the claims of the ID token after all checks."""
        values = {"iss": self._config.issuer, "aud": self._config.client_id}
        id_token = self._decode(str(token.get("id_token", "")))
        claims = CodeIDToken(
            id_token.claims,
            id_token.header,
            {name: {"essential": True, "value": value} for name, value in values.items()},
            {
                "nonce": pending.nonce,
                "client_id": self._config.client_id,
                "access_token": token.get("access_token"),
            },
        )
        with _provider_errors("ID token"):
            claims.validate(now_s, LEEWAY_S)
        if not claims["sub"]:
            raise ProviderFault(INVALID, reason="ID token: empty sub")
        return dict(claims)

    def _decode(self, text: str) -> jwt.Token:
        keys = self._read_keys()
        with _provider_errors("ID token"):
            try:
                return jwt.decode(text, keys, algorithms=ALGORITHMS)
            except (InvalidKeyIdError, BadSignatureError):  # perhaps signed with a new key
                keys = self._read_keys(max_age_s=KEYS_EVERY_S)
                return jwt.decode(text, keys, algorithms=ALGORITHMS)

    def _userinfo(self, client: Any, subject: str) -> dict[str, Any]:
        address = self._endpoint("userinfo_endpoint")
        with _provider_errors("userinfo"):
            claims = _json_object(client.get(address))
        if claims.get("sub") != subject:
            raise ProviderFault(INVALID, reason="userinfo of another subject")
        return claims

    def _endpoint(self, name: str) -> str:
        """Return an endpoint of the metadata, which must be as safe as the issuer."""
        endpoint = self._read_metadata().get(name)
        scheme = urlsplit(self._config.issuer).scheme
        if not isinstance(endpoint, str) or not endpoint.startswith(f"{scheme}://"):
            raise ValueError(f"{name} of the metadata is not a URL with {scheme}")
        if not is_safe_url(endpoint.partition("?")[0]):
            raise ValueError(f"{name} of the metadata is not a safe URL")
        return endpoint

    def _read_metadata(self) -> dict[str, Any]:
        with self._lock:
            if not self._metadata or self._clock() - self._metadata_at > KEPT_S:
                metadata = self._get(self._config.issuer.rstrip("/") + "/.well-known/openid-configuration")
                if metadata.get("issuer") != self._config.issuer:
                    raise ValueError(f"the metadata is of the issuer {metadata.get('issuer')!r}")
                self._metadata, self._metadata_at = metadata, self._clock()
            return self._metadata

    def _read_keys(self, *, max_age_s: float = KEPT_S) -> KeySet:
        address = self._endpoint("jwks_uri")
        with self._lock:
            if not self._keys or self._clock() - self._keys_at > max_age_s:
                self._keys, self._keys_at = _key_set(self._get(address)), self._clock()
            return self._keys

    def _get(self, address: str) -> Any:
        """Return a JSON object of the provider; after a failure none is requested for PAUSE_S."""
        if self._clock() < self._paused_until:
            raise requests.ConnectionError("the last call failed a moment ago")
        try:
            with self._client() as client:
                return _json_object(client.get(address, withhold_token=True))
        except requests.RequestException:
            self._paused_until = self._clock() + PAUSE_S
            raise


def _basic(client: Any, _method: str, uri: str, headers: dict[str, str], body: str) -> tuple[Any, ...]:
    """Add id and secret, each form-encoded (RFC 6749, section 2.3.1), which Authlib leaves out."""
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    return uri, headers, body


def _key_set(answer: Mapping[str, Any]) -> KeySet:
    """Return the keys that can be read, without the others (RFC 7517, section 5).

    Raises ValueError if none can.
    """
    keys, problem = list[Key](), ""
    entries = answer.get("keys")
    for entry in entries if isinstance(entries, list) else []:
        try:
            keys.append(JWKRegistry.import_key(entry))
        except (JoseError, *SHAPE_ERRORS) as exc:
            problem = f"{type(exc).__name__}: {exc}"
            logger.warning("openid provider has a key that cannot be read reason=%s", problem)
    if not keys:
        raise ValueError(f"the keys of the provider cannot be read: {problem or 'there are none'}")
    return KeySet(keys)


@contextmanager
def _provider_errors(subject: str) -> Iterator[None]:
    """Convert the errors of an answer of the provider into ProviderFault, since users cannot change it.

    Raises SignOnRefused if the code is invalid or belongs to another sign-on.
    """
    try:
        yield
    except (OAuthError, JoseError, *SHAPE_ERRORS) as exc:
        if isinstance(exc, requests.RequestException):  # some errors are a ValueError, too
            raise
        is_of_user = isinstance(exc, OAuthError) and exc.error == "invalid_grant"
        if is_of_user or (isinstance(exc, ClaimError) and exc.claim == "nonce"):
            raise SignOnRefused(INVALID, reason=f"{subject}: {exc}") from exc
        logger.warning("openid provider's answer invalid reason=%s: %s", subject, exc)
        raise ProviderFault(INVALID, reason=f"{subject}: {exc}") from exc


def _json_object(answer: requests.Response) -> dict[str, Any]:
    answer.raise_for_status()
    value = answer.json()
    if not isinstance(value, dict):
        raise ValueError(f"{answer.url} answers no JSON object")
    return value
