"""Alarm channel URLs: Apprise URLs of an allow-list of schemes, which lead to nothing but the channel."""

import re
from urllib.parse import unquote, urlsplit

from app.domain.executors.networks import EVERYWHERE, is_allowed, is_metadata_name, read_literal
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: schemes whose URL names a host rather than a token
HOST_SCHEMES = frozenset(
    scheme + secure for scheme in ("json", "form", "xml", "ntfy", "bark", "gotify") for secure in ("", "s")
)
#: chat and paging services, generic webhooks, and push services such as ntfy
SCHEMES = HOST_SCHEMES | {
    *("dingtalk", "feishu", "lark", "wecombot", "slack", "tgram", "discord", "pagerduty", "opsgenie"),
}
#: parameters with which the console would follow redirects or read other URLs and local files
REFUSED_PARAMETERS = frozenset({"redirect", "template", "attach", "attachment", "config"})
_BETWEEN_URLS = re.compile(r"[\s,;]+(?=[A-Za-z0-9]{1,32}://)|\s+")


def split_urls(text: str | None) -> list[str]:
    """Return the URLs of a text, separated by line ends and blanks, or by commas before a scheme."""
    return [url for url in _BETWEEN_URLS.split(text or "") if url]


def check_urls(field: str, text: str | None) -> None:
    """Raise InvalidInput for a URL with another scheme or that ``refusal`` refuses.

    The message contains no secret part of the URL.
    """
    for url in split_urls(text):
        scheme, separator, rest = url.partition("://")
        if not separator or not rest or scheme.lower() not in SCHEMES:
            raise InvalidInput(
                field,
                N_(
                    "Alarm channel %(channel)s refused: it must start with one of %(schemes)s and ://",
                    channel=label(url),
                    schemes=", ".join(sorted(SCHEMES)),
                ),
            )
        reason = refusal(url)
        if reason is not None:
            raise InvalidInput(
                field,
                N_("Alarm channel %(channel)s refused: %(reason)s", channel=label(url), reason=reason),
            )


def refusal(url: str) -> str | None:
    """Return why no alarm may be sent to a URL, or None; its host name is checked again when it is resolved.

    Shape: ``json://user:password@hooks.example.com:8443/path?method=POST``.
    """
    address, _, query = url.partition("?")
    for parameter in query.replace(";", "&").split("&"):
        name = _parameter_name(parameter)
        if name in REFUSED_PARAMETERS:
            return N_("its parameter %(name)s is not allowed", name=f"{name}=")
    scheme, _, rest = address.partition("://")
    if scheme.lower() not in HOST_SCHEMES:
        return None
    try:
        host = unquote(urlsplit(f"//{rest}").hostname or "").strip()
    except ValueError:
        return N_("its host is neither a name nor an IP address")
    literal = read_literal(host)
    if is_metadata_name(host) or (literal is not None and not is_allowed(literal, EVERYWHERE)):
        return N_("%(peer)s is a link-local or metadata address, to which no alarm is sent", peer=host)
    return None


def _parameter_name(parameter: str) -> str:
    """Return the name as Apprise reads it; ``+name`` is a header of the request."""
    raw = parameter.partition("=")[0]
    return unquote(raw[:1] + raw[1:].replace("+", " ")).strip().lower()


def label(url: str) -> str:
    """Return the display name of a channel: its scheme, without the secret part."""
    scheme, separator, _ = url.partition("://")
    return f"{scheme[:20]}://…" if separator else "…"
