"""Alarm channels: mail and Apprise. One attempt per call, bounded in time; errors are returned as text."""

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

import apprise

from app.config import MailConfig
from app.domain.alarm_urls import label
from app.domain.texts import N_

#: timeout of each exchange with a mail server, in seconds
MAIL_TIMEOUT_S = 10
#: longest subject or title, in characters
TITLE_MAX = 150
#: characters of an error that are kept
ERROR_MAX = 200

#: result of a message that was accepted
OK = "ok"


@dataclass(frozen=True, slots=True)
class Message:
    """Title and text of an alarm."""

    title: str
    body: str


def send_mail(config: MailConfig, address: str, message: Message) -> str:
    """Send a mail to one address; return OK or the error. Never raises."""
    try:
        mail = _compose(config, address, message)
        with _connect(config) as server:
            if config.username:
                server.login(config.username, config.password)
            server.send_message(mail)
    except (OSError, smtplib.SMTPException, ValueError) as exc:
        return (str(exc) or type(exc).__name__)[:ERROR_MAX]
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


def _connect(config: MailConfig) -> smtplib.SMTP:
    if config.security == "tls":
        return smtplib.SMTP_SSL(
            config.host, config.port, timeout=MAIL_TIMEOUT_S, context=ssl.create_default_context()
        )
    server = smtplib.SMTP(config.host, config.port, timeout=MAIL_TIMEOUT_S)
    if config.security == "starttls":
        server.starttls(context=ssl.create_default_context())
    return server


def send_apprise(url: str, message: Message) -> str:
    """Send to one Apprise URL; return OK or the error, without the secrets of the URL. Never raises."""
    channel = apprise.Apprise()
    if not channel.add(url):
        return N_("Apprise does not recognise %(channel)s", channel=label(url))
    try:
        sent = channel.notify(
            title=message.title[:TITLE_MAX], body=message.body, body_format=apprise.NotifyFormat.TEXT
        )
    except (TypeError, OSError, ValueError) as exc:
        return type(exc).__name__
    return OK if sent else N_("the channel refused the message or did not answer")
