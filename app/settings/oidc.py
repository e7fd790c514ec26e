"""Settings of the sign-on by OpenID Connect (``XXL_JOB_OIDC_*``), with their checks."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from app.errors import NotConfigured

#: rights a claim may grant, as in ``domain.permissions.Right``
RIGHTS = ("view", "operate", "edit", "glue")
#: stands for all executor groups
ALL_GROUPS = "*"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
RIGHTS_SHAPE = (
    "expected VALUE=APPNAME:RIGHT,RIGHT;… such as payments-ops=payments:operate,edit;viewers=*:view"
)


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights on an executor group for users whose groups claim contains a value."""

    value: str
    #: app name of executor groups, or ALL_GROUPS
    app_name: str
    rights: frozenset[str]

    def __str__(self) -> str:
        return f"{self.value}={self.app_name}:{','.join(sorted(self.rights))}"


@dataclass(frozen=True, slots=True)
class OidcConfig:
    """OpenID provider and the meaning of its claims; with an empty issuer there is no sign-on."""

    issuer: str = ""
    client_id: str = ""
    #: empty: a public client, which proves itself by PKCE alone
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    username_claim: str = "preferred_username"
    groups_claim: str = "groups"
    #: values of the groups claim that make an administrator; empty: the role is managed in the console
    admin_values: tuple[str, ...] = ()
    #: empty: the rights are managed in the console
    rights: tuple[Grant, ...] = ()
    #: subject or user name that becomes administrator at its first login
    first_admin: str = ""
    #: text of the button; empty: a default in the reader's language
    label: str = ""


def is_safe_url(text: str) -> bool:
    """Whether this is an ``https`` URL, or an ``http`` one of this host; without user, query and fragment."""
    try:
        url = urlsplit(text)
        host, _port = url.hostname or "", url.port
    except ValueError:
        return False
    if not host or "@" in url.netloc or "?" in text or "#" in text or not text.isprintable() or " " in text:
        return False
    return url.scheme == "https" or (url.scheme == "http" and host in LOOPBACK)


def oidc_config(values: dict[str, Any], names: Collection[str], *, public_url: str) -> OidcConfig:
    """Return the settings; raises NotConfigured for a combination that cannot work.

    ``values`` are the parsed fields, ``names`` the variables that are set.
    """
    config = OidcConfig(**values)
    if not config.issuer:
        if names:
            raise NotConfigured(f"{min(names)} needs XXL_JOB_OIDC_ISSUER, the address of the OpenID provider")
        return config
    if not config.client_id:
        raise NotConfigured("XXL_JOB_OIDC_ISSUER needs XXL_JOB_OIDC_CLIENT_ID, the client at the provider")
    if not is_safe_url(public_url):
        raise NotConfigured(
            "XXL_JOB_OIDC_ISSUER needs XXL_JOB_PUBLIC_URL, the address of the console in the browser:"
            " https://…, or http://… on loopback"
        )
    if config.first_admin and config.admin_values:
        raise NotConfigured(
            "XXL_JOB_OIDC_FIRST_ADMIN has no effect with XXL_JOB_OIDC_ADMIN_VALUES: set one of them"
        )
    return config


def _url(text: str) -> str:
    if not is_safe_url(text):
        raise ValueError("expected https://HOST/…, or http://… on loopback, without query")
    return text


def _text(text: str) -> str:
    return text


def _scopes(text: str) -> tuple[str, ...]:
    scopes = tuple(part for part in re.split(r"[,\s]+", text) if part)
    if "openid" not in scopes:
        raise ValueError("expected scopes with openid among them, such as openid profile email")
    return scopes


def _values(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _grants(text: str) -> tuple[Grant, ...]:
    return tuple(_grant(entry.strip()) for entry in text.split(";") if entry.strip())


def _grant(entry: str) -> Grant:
    # A value may be a distinguished name with "=", whereas a right never contains one.
    value, equals, grant = entry.rpartition("=")
    app_name, colon, words = grant.partition(":")
    rights = frozenset(word.strip() for word in words.split(","))
    if not (value.strip() and equals and app_name.strip() and colon):
        raise ValueError(f"{RIGHTS_SHAPE}; wrong: {entry}")
    if unknown := sorted(rights - set(RIGHTS)):
        raise ValueError(f"unknown right {unknown[0]!r}; expected {', '.join(RIGHTS)}")
    return Grant(value.strip(), app_name.strip(), rights)


#: variable -> (field of OidcConfig, parser that raises ValueError with what is expected)
OIDC_SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "XXL_JOB_OIDC_ISSUER": ("issuer", _url),
    "XXL_JOB_OIDC_CLIENT_ID": ("client_id", _text),
    "XXL_JOB_OIDC_CLIENT_SECRET": ("client_secret", _text),
    "XXL_JOB_OIDC_SCOPES": ("scopes", _scopes),
    "XXL_JOB_OIDC_USERNAME_CLAIM": ("username_claim", _text),
    "XXL_JOB_OIDC_GROUPS_CLAIM": ("groups_claim", _text),
    "XXL_JOB_OIDC_ADMIN_VALUES": ("admin_values", _values),
    "XXL_JOB_OIDC_RIGHTS": ("rights", _grants),
    "XXL_JOB_OIDC_FIRST_ADMIN": ("first_admin", _text),
    "XXL_JOB_OIDC_LABEL": ("label", _text),
}
