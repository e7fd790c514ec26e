"""Alarm channel URLs: Apprise URLs of an allow-list of schemes."""

from app.domain.texts import N_
from app.errors import InvalidInput

#: chat and paging services, generic webhooks, and push services such as ntfy
SCHEMES = frozenset(
    {"dingtalk", "feishu", "wecombot", "slack", "tgram", "discord", "pagerduty", "opsgenie"}
    | {
        scheme + secure
        for scheme in ("json", "form", "xml", "ntfy", "bark", "gotify")
        for secure in ("", "s")
    }
)


def split_urls(text: str | None) -> list[str]:
    """Return the URLs of a text, separated by line ends and blanks."""
    return (text or "").split()


def check_urls(field: str, text: str | None) -> None:
    """Raise InvalidInput for a URL without an allowed scheme; the message contains no secret part of it."""
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


def label(url: str) -> str:
    """Return the display name of a channel: its scheme, without the secret part."""
    scheme, separator, _ = url.partition("://")
    return f"{scheme[:20]}://…" if separator else "…"
