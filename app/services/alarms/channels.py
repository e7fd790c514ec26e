"""Senders of alarm messages: mail, Apprise, webhooks. One bounded attempt per call; errors are returned.

No sender follows redirects or connects to link-local and metadata addresses. Apprise and ``requests`` are
loaded for the first message, because they cost every process 8 MB.
"""

import html
import json
import re
import smtplib
import socket
import ssl
import sys
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from app.domain.alarms.alarm_urls import label, refusal
from app.domain.alarms.mail_addresses import find_address, with_ascii_host
from app.domain.executors.networks import EVERYWHERE
from app.domain.text.texts import N_
from app.services.alarms.mail_errors import mail_error
from app.settings.config import MailConfig

if TYPE_CHECKING:
    from app.executors.guarded_http import ConnectionGuard

#: timeouts of each exchange with a mail server and of a whole mail, in seconds
MAIL_TIMEOUT_S = 10
MAIL_TOTAL_S = 25
#: longest subject or title, in characters
TITLE_MAX = 150

#: timeouts of a connection to a webhook and of its answer, in seconds
WEBHOOK_TIMEOUT_S = (4, 10)

#: result of a message that was accepted
OK = "ok"
#: fact by which a service recognises messages about the same incident
DEDUP_KEY = "dedup_key"
#: characters that may mark the title up in a text
MARKUP_MAX = 32
#: schemes whose services count a message as HTML, with its special characters escaped
LIMITED_ESCAPED = frozenset({"tgram"})
#: schemes whose services limit a message in bytes rather than in characters
LIMITED_IN_BYTES = frozenset({"dingtalk", "feishu", "lark", "wecombot"})
#: schemes whose services limit a message in bytes, and the JSON object with its title in characters
LIMITED_AS_OBJECT = frozenset({"ntfy", "ntfys"})
#: bytes of a text to ntfy, and characters of title and text in JSON; Apprise makes files of larger objects
NTFY_TEXT_MAX, NTFY_OBJECT_MAX = 4_096, 7_500

#: where a text that would notify everyone in a chat is broken by a zero-width space: after this character
MENTION = re.compile(r"@(?=\W*(?:all|channel|everyone|here)\b)|<(?=@|!|at\b|users/)", re.IGNORECASE)
#: the same for services where, through Apprise, any name or number behind it notifies its user
ANY_MENTION = re.compile(r"[@<](?=\S)")
MENTIONING = frozenset({"discord", "fluxer", "guilded"})


class MessageType(StrEnum):
    """What a message is about, which channels show by colour or priority; Apprise's names."""

    FAILURE = "failure"
    SUCCESS = "success"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Message:
    """Title and text of an alarm, and the same as fields for webhooks."""

    title: str
    body: str
    type: MessageType = MessageType.INFO
    facts: Mapping[str, Any] = field(default_factory=dict)


def send_mail(config: MailConfig, receiver: str, message: Message) -> str:
    """Send a mail to one address, with or without a name; return OK or the error. Never raises."""
    from app.executors.guarded_http import ConnectionGuard

    mailbox = find_address(receiver)
    if mailbox is None:
        return N_('"%(text)s" is not one mail address; separate several by commas', text=receiver)
    address, guard, is_accepted = with_ascii_host(mailbox), ConnectionGuard(EVERYWHERE), False
    try:
        mail = _compose(config, address, message)
        with guard.cut_after(MAIL_TOTAL_S), _connect(config, guard) as server:
            if config.username:
                server.login(config.username, config.password)
            server.send_message(mail, to_addrs=[address])
            is_accepted = True
    except (OSError, smtplib.SMTPException, ValueError) as exc:
        if is_accepted:  # the end of the session has failed
            return OK
        if guard.is_cut:
            return N_("the mail server took over %(seconds)s s", seconds=MAIL_TOTAL_S)
        return mail_error(exc)
    return OK


def _compose(config: MailConfig, address: str, message: Message) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = " ".join(message.title.split())[:TITLE_MAX]
    mail["From"] = config.sender or config.username
    mail["To"] = address
    mail["Date"] = formatdate(localtime=True)
    mail["Message-ID"] = make_msgid(domain="xxl-job.local")
    mail.set_content(message.body)
    return mail


class _Smtp(smtplib.SMTP):
    """SMTP by guarded connections: none to link-local and metadata addresses, cut when the time is up."""

    def __init__(self, guard: "ConnectionGuard", *args: Any, **options: Any) -> None:
        self._guard = guard
        super().__init__(*args, **options)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connection: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]
        return self._guard.check(connection)

    def data(self, msg: Any) -> tuple[int, bytes]:
        """Send the text of a mail; a server may examine it before it answers, until the guard cuts it off."""
        if self.sock is not None:
            self.sock.settimeout(MAIL_TOTAL_S)
        return super().data(msg)


class _SmtpTls(_Smtp, smtplib.SMTP_SSL):
    """The same with TLS from the first byte."""


def _connect(config: MailConfig, guard: "ConnectionGuard") -> smtplib.SMTP:
    if config.security == "tls":
        return _SmtpTls(
            guard, config.host, config.port, timeout=MAIL_TIMEOUT_S, context=ssl.create_default_context()
        )
    server = _Smtp(guard, config.host, config.port, timeout=MAIL_TIMEOUT_S)
    if config.security == "starttls":
        server.starttls(context=ssl.create_default_context())
        if server.sock is not None:
            guard.register(server.sock)  # the TLS socket
    return server


def url_refusal(url: str) -> str | None:
    """Return why nothing can be sent to an Apprise URL, or None; connects to nothing."""
    return _plugin(url)[1]


def _plugin(url: str) -> tuple[Any, str | None]:
    import apprise

    reason = refusal(url)
    if reason is not None:
        return None, reason
    # not add(url), which would take several URLs; WEBHOOKS refuses redirects too, which no plugin overrides
    plugin = apprise.Apprise.instantiate(url, asset=apprise.AppriseAsset(http_redirects=False))
    reason = None if plugin else N_("Apprise does not recognise %(channel)s", channel=label(url))
    return plugin, reason


def send_apprise(url: str, message: Message) -> str:
    """Send to one Apprise URL; return OK or the error, without the secrets of the URL. Never raises."""
    import apprise

    from app.executors.webhook_http import collected_refusals

    plugin, reason = _plugin(url)
    if reason is not None:
        return reason
    message = _without_mentions(message, plugin.schemas())
    channel = apprise.Apprise(plugin, asset=plugin.asset)
    _guard_plugins()
    try:
        with collected_refusals() as refusals:
            is_accepted = True
            for key in _keys_of(plugin, message):
                _name_incident(plugin, key)
                is_accepted &= bool(
                    channel.notify(
                        title=message.title[:TITLE_MAX],
                        body=_fitting(plugin, message),
                        notify_type=message.type.value,
                        body_format=apprise.NotifyFormat.TEXT,
                    )
                )
    except (TypeError, OSError, ValueError, RuntimeError) as exc:
        return type(exc).__name__
    if refusals:
        return refusals[0]
    return OK if is_accepted else N_("the channel refused the message or did not answer")


def _keys_of(plugin: Any, message: Message) -> Sequence[str | None]:
    """Return the keys of the incidents that a message is sent for, one by one: PagerDuty resolves each."""
    is_resolving = message.type is MessageType.SUCCESS and hasattr(plugin, "dedup")
    keys: Sequence[str] = message.facts.get("dedup_keys", ()) if is_resolving else ()
    return keys or [message.facts.get("dedup_key")]


def _name_incident(plugin: Any, key: str | None) -> None:
    """Let services of incidents put the messages about one together: PagerDuty and Opsgenie.

    PagerDuty resolves its incident with the message that promises are kept again.
    """
    if key is None:
        return
    if hasattr(plugin, "dedup"):
        plugin.dedup, plugin.action = key, "map"
    elif hasattr(plugin, "alias"):
        plugin.alias = key


def _without_mentions(message: Message, schemes: Collection[str]) -> Message:
    """Return a message, whose text may be an executor's, that does not notify everyone in a chat."""
    pattern = MENTION if MENTIONING.isdisjoint(schemes) else ANY_MENTION
    title, body = (pattern.sub("\\g<0>\u200b", text) for text in (message.title, message.body))
    return replace(message, title=title, body=body)


def _fitting(plugin: Any, message: Message) -> str:
    """Return as much of a message as the service takes; it refuses longer ones."""
    body = message.body
    for size, room in _limits(plugin, message.title[:TITLE_MAX]):
        body = _cut(body, size, room)
    return body


def _cut(body: str, size: Callable[[str], int], room: int) -> str:
    if size(body) <= room:
        return body
    length = bisect_right(range(len(body)), room, key=lambda count: size(f"{body[:count]}…")) - 1
    return f"{body[: max(length, 0)]}…"


def _limits(plugin: Any, title: str) -> list[tuple[Callable[[str], int], int]]:
    """Return how a service measures a text, and how much it takes beside a title."""
    schemes = plugin.schemas()
    if not LIMITED_AS_OBJECT.isdisjoint(schemes):
        return [(_bytes_of, NTFY_TEXT_MAX), (_json_size, NTFY_OBJECT_MAX - _json_size(title))]
    size: Callable[[str], int] = len
    if not LIMITED_IN_BYTES.isdisjoint(schemes):
        size = _bytes_of
    elif not LIMITED_ESCAPED.isdisjoint(schemes):
        size = _escaped_size
    # the title may become part of the text
    return [(size, int(plugin.body_maxlen) - size(title) - MARKUP_MAX)]


def _bytes_of(text: str) -> int:
    return len(text.encode())


def _escaped_size(text: str) -> int:
    return len(html.escape(text))


def _json_size(text: str) -> int:
    return len(json.dumps(text))


def send_webhook(url: str, message: Message) -> str:
    """Post the facts of a message as JSON; return OK or the error, without the URL. Never raises."""
    from app.executors.webhook_http import WEBHOOKS, collected_refusals

    reason = refusal(f"json://{urlsplit(url).netloc}")
    if reason is not None:
        return reason
    text = {"type": message.type.value, "title": message.title, "message": message.body}
    try:
        with collected_refusals() as refusals:
            answer = WEBHOOKS.post(url, json={**message.facts, **text}, timeout=WEBHOOK_TIMEOUT_S)
    except (OSError, ValueError, RuntimeError) as exc:
        return refusals[0] if refusals else type(exc).__name__
    if refusals:
        return refusals[0]
    return (
        OK if answer.ok else N_("the webhook answered with the status %(status)s", status=answer.status_code)
    )


def _guard_plugins() -> None:
    """Replace ``requests`` in all modules of Apprise; it loads them when they are needed first."""
    from app.executors.webhook_http import WEBHOOKS

    for name, module in list(sys.modules.items()):
        if name.startswith("apprise.") and hasattr(module, "requests"):
            vars(module)["requests"] = WEBHOOKS
