"""Which alarm channels may be entered: Apprise URLs of an allow-list of schemes."""

from app.domain.texts import N_
from app.errors import InvalidInput

#: DingTalk, Feishu, WeCom, Slack, generic webhooks (JSON, form, XML), Telegram, Discord, ntfy, PagerDuty, Opsgenie
SCHEMES = frozenset(
    {"dingtalk", "feishu", "wecombot", "slack", "tgram", "discord", "pagerduty", "opsgenie"}
    | {
        scheme + secure
        for scheme in ("json", "form", "xml", "ntfy", "bark", "gotify")
        for secure in ("", "s")
    }
)


def split_urls(text: str | None) -> list[str]:
    """Return the URLs of a text, one a line or parted by blanks."""
    return (text or "").split()


def check_urls(field: str, text: str | None) -> None:
    """Raise InvalidInput for a URL no channel can be made of; its secret part is not repeated."""
    for url in split_urls(text):
        scheme, separator, rest = url.partition("://")
        if not separator or not rest or scheme.lower() not in SCHEMES:
            raise InvalidInput(
                field,
                N_(
                    "Alarm channel %(channel)s is not supported; it must start with one of %(schemes)s and ://",
                    channel=label(url),
                    schemes=", ".join(sorted(SCHEMES)),
                ),
            )


def label(url: str) -> str:
    """Return what a channel is called where people read it: its scheme, without the secret that follows."""
    scheme, separator, _ = url.partition("://")
    return f"{scheme[:20]}://…" if separator else "…"
