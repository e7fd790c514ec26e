"""Settings of alarm channels: validation of the values, and the Apprise URL built from them.

Settings are the fields of a kind by name, all texts. A mail channel has addresses; a webhook is posted to its
own URL; every other kind becomes one Apprise URL.
"""

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, quote, urlsplit

from app.domain.alarms.alarm_urls import check_urls, refusal, split_urls
from app.domain.alarms.channel_kinds import KINDS, ChannelField, ChannelKind
from app.domain.alarms.mail_addresses import quoted_invalid
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: longest field, in characters, and most addresses of a mail channel
FIELD_MAX = 1_000
MAILS_MAX = 20

Settings = Mapping[str, str]

_TOKEN = r"[A-Za-z0-9_-]+"
_SLACK = re.compile(r"/services/([A-Za-z0-9]+)/([A-Za-z0-9]+)/([A-Za-z0-9]+)/?")
_FEISHU = re.compile(rf"/open-apis/bot/v2/hook/({_TOKEN})/?")
_DINGTALK = re.compile(r"/robot/send\?access_token=([A-Za-z0-9]+)")
_WECOM = re.compile(rf"/cgi-bin/webhook/send\?key=({_TOKEN})")
#: kind -> host of its webhooks -> Apprise scheme, and the form of path and query
_CHATS: Mapping[ChannelKind, tuple[Mapping[str, str], re.Pattern[str]]] = {
    ChannelKind.SLACK: ({"hooks.slack.com": "slack"}, _SLACK),
    ChannelKind.FEISHU: ({"open.feishu.cn": "feishu", "open.larksuite.com": "lark"}, _FEISHU),
    ChannelKind.DINGTALK: ({"oapi.dingtalk.com": "dingtalk"}, _DINGTALK),
    ChannelKind.WECOM: ({"qyapi.weixin.qq.com": "wecombot"}, _WECOM),
}


def check_settings(kind: ChannelKind, values: Settings) -> dict[str, str]:
    """Return the settings to store; raises InvalidInput with the errors of all fields."""
    errors, settings = InputErrors(), dict[str, str]()
    for field in KINDS[kind].fields:
        with errors:
            settings[field.name] = _check(kind, field, values.get(field.name, "").strip())
    errors.raise_all()
    return settings


def url_of(kind: ChannelKind, settings: Settings) -> str:
    """Return the Apprise URL of checked settings; of a webhook its own URL; empty for mail."""
    if kind is ChannelKind.MAIL:
        return ""
    if kind is ChannelKind.NTFY:
        return _ntfy_url(settings)
    if kind not in _CHATS:
        return settings["url"]
    hosts, shape = _CHATS[kind]
    host, rest = _split(settings["url"])
    match = shape.fullmatch(rest)
    tokens = "/".join(match.groups()) if match else ""
    secret = f"{settings['secret']}@" if settings.get("secret") else ""
    return f"{hosts[host]}://{secret}{tokens}/?image=no"


def mails_of_channel(settings: Settings) -> list[str]:
    """Return the addresses of a mail channel."""
    pieces = re.split(r"[,;\s]+", settings.get("addresses", ""))
    return list(dict.fromkeys(piece for piece in pieces if piece))


def summary_of(kind: ChannelKind, settings: Settings) -> str:
    """Return what may be shown of the settings: addresses, or where the channel leads."""
    if kind is ChannelKind.MAIL:
        return ", ".join(mails_of_channel(settings))
    if kind is ChannelKind.NTFY:
        return f"{settings.get('server', '')}/{settings.get('topic', '')}"
    if kind is ChannelKind.OTHER:
        return f"{settings.get('url', '').partition('://')[0][:20]}://…"
    parts = _host_of(settings.get("url", ""))
    return f"{parts}/…" if parts else "…"


def _check(kind: ChannelKind, field: ChannelField, text: str) -> str:
    if not text:
        if field.is_required:
            raise InvalidInput(field.name, N_("Enter a value, such as %(example)s", example=field.example))
        return ""
    if len(text) > FIELD_MAX:
        raise InvalidInput(field.name, N_("At most %(limit)s characters", limit=FIELD_MAX))
    if not text.isprintable() and field.name != "addresses":
        raise InvalidInput(field.name, N_("It contains a character that cannot be printed"))
    if field.name == "addresses":
        return _checked_mails(text)
    if kind in _CHATS and field.name == "url":
        return _checked_chat(kind, field, text)
    check = {"secret": _checked_secret, "topic": _checked_topic, "server": _checked_server}.get(field.name)
    if check is not None:
        return check(text)
    if field.name == "token":
        return _checked_token(text)
    return _checked_webhook(text) if kind is ChannelKind.WEBHOOK else _checked_apprise(text)


def _checked_mails(text: str) -> str:
    addresses = mails_of_channel({"addresses": text})
    wrong = quoted_invalid(addresses)
    if wrong:
        raise InvalidInput(
            "addresses", N_("%(addresses)s: not a mail address such as ops@example.com", addresses=wrong)
        )
    if len(addresses) > MAILS_MAX:
        raise InvalidInput("addresses", N_("At most %(limit)s addresses", limit=MAILS_MAX))
    return ", ".join(addresses)


def _checked_chat(kind: ChannelKind, field: ChannelField, text: str) -> str:
    hosts, shape = _CHATS[kind]
    host, rest = _split(text)
    if host not in hosts or not text.lower().startswith("https://"):
        raise InvalidInput(
            field.name,
            N_(
                '"%(host)s" is not https://%(right)s',
                host=_host_of(text) or "…",
                right=", https://".join(hosts),
            ),
        )
    if shape.fullmatch(rest) is None:
        raise InvalidInput(
            field.name,
            N_("What follows the host is incomplete; it has the form %(example)s", example=field.example),
        )
    return text


def _checked_secret(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9]+", text) is None:
        raise InvalidInput("secret", N_("A secret has letters and digits only, such as SECxxxxxxxx"))
    return text


def _checked_token(text: str) -> str:
    if re.fullmatch(r"[\x21-\x7e]+", text) is None:
        raise InvalidInput("token", N_("A token contains only ASCII characters and no spaces"))
    return text


def _checked_topic(text: str) -> str:
    wrong = sorted(set(re.findall(r"[^A-Za-z0-9_-]", text)))
    if wrong or len(text) > 64:
        culprit = " ".join(f'"{character}"' for character in wrong) or str(len(text))
        raise InvalidInput(
            "topic", N_("%(wrong)s: at most 64 letters, digits, - and _ are allowed", wrong=culprit)
        )
    return text


def _checked_server(text: str) -> str:
    parts = _web_parts("server", text)
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        raise InvalidInput("server", N_("Only scheme, host and port, such as https://ntfy.example.com"))
    return text.rstrip("/")


def _checked_webhook(text: str) -> str:
    parts = _web_parts("url", text)
    if parts.fragment or " " in text:
        raise InvalidInput("url", N_("A URL contains no spaces and no part after #"))
    return text


def _web_parts(field: str, text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(field, N_("Enter a URL that starts with https:// or http:// and a host"))
    reason = refusal(f"json://{parts.netloc}")
    if reason is not None:
        raise InvalidInput(field, reason)
    return parts


def _checked_apprise(text: str) -> str:
    if len(split_urls(text)) != 1:
        raise InvalidInput("url", N_("Enter one Apprise URL; for another one add another channel"))
    check_urls("url", text)
    return text


def _ntfy_url(settings: Settings) -> str:
    parts = urlsplit(settings["server"])
    scheme = "ntfys" if parts.scheme == "https" else "ntfy"
    token = f"{quote(settings['token'], safe='')}@" if settings.get("token") else ""
    query = "mode=private&image=no" + ("&auth=token" if token else "")
    return f"{scheme}://{token}{parts.netloc}/{quote(settings['topic'], safe='')}?{query}"


def _split(text: str) -> tuple[str, str]:
    """Return the host of a webhook in lower case, and path and query."""
    try:
        parts = urlsplit(text)
        return (parts.hostname or "").lower(), parts.path + (f"?{parts.query}" if parts.query else "")
    except ValueError:
        return "", ""


def _host_of(text: str) -> str:
    """Return scheme and host of a URL, which are no secrets; empty if it has none."""
    try:
        parts = urlsplit(text)
        return f"{parts.scheme}://{parts.hostname}" if parts.hostname else ""
    except ValueError:
        return ""
