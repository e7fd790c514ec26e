"""Alarm targets: mail addresses, channels of the console and Apprise URLs, each with its own queue."""

import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from app.domain.alarms.alarm_urls import label, split_urls
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.alarms.channel_settings import Settings, mails_of_channel, url_of
from app.domain.text.texts import N_
from app.models.channel import AlarmChannel
from app.services.alarms.channels import Message, send_apprise, send_mail, send_webhook
from app.settings.config import Config
from app.settings.sealing import sealer

logger = logging.getLogger(__name__)

#: result of a mail address without a mail server
NO_MAIL_SERVER = N_("XXL_JOB_MAIL_HOST is not set")
#: messages sent to one channel at the same time
AT_ONCE = 2
#: before the fingerprint of a URL in its target name, and characters of it
_MARK = " #"
_MARK_LENGTH = 8
_MARKED = re.compile(rf"(?:\d+|channel) .+{_MARK}[0-9a-f]{{{_MARK_LENGTH}}}")


@dataclass(frozen=True, slots=True)
class Target:
    """Receiver of a message."""

    #: targets with the same channel share a queue
    channel: str
    #: sends the message and returns ``OK`` or the error
    send: partial[str]


def mail_name(address: str) -> str:
    """Return the target name of a mail address."""
    return f"mail {address}"


def url_name(number: int, url: str) -> str:
    """Return the target name of an Apprise URL, the nth of a list: a label and a fingerprint, no secrets."""
    return f"{number} {label(url)}{_mark(url)}"


def channel_name(channel: AlarmChannel, url: str) -> str:
    """Return the target name of a channel other than of mail: its name and the fingerprint of its URL."""
    return f"channel {channel.name}{_mark(url)}"


def identity(name: str) -> str:
    """Return the part of a target name that reordered URLs and renamed channels leave unchanged."""
    return name.rpartition(_MARK)[2] if _MARKED.fullmatch(name) else name


def displayed(name: str) -> str:
    """Return a target name without the fingerprint of its URL."""
    return name.rpartition(_MARK)[0] if _MARKED.fullmatch(name) else name


def is_among(name: str, others: Collection[str]) -> bool:
    """Whether a target is among others, whose channels may have been stored without a fingerprint."""
    return displayed(name) in others or identity(name) in map(identity, others)


def _mark(url: str) -> str:
    return f"{_MARK}{sealer().fingerprint(url)[:_MARK_LENGTH]}"


def settings_of(channel: AlarmChannel) -> Settings:
    """Return the settings of a channel; empty ones if they cannot be read."""
    try:
        settings = json.loads(channel.settings)
    except ValueError:  # sealed with another application key since the start
        return {}
    return {str(name): str(value) for name, value in settings.items()} if isinstance(settings, dict) else {}


def destinations_of(channel: AlarmChannel) -> dict[str, str]:
    """Return target name -> destination of a channel: its mail addresses, or its URL.

    Targets with the same destination are one, with the name of the first.
    """
    if channel.kind == ChannelKind.MAIL:
        mails = [mail_name(address) for address in mails_of_channel(settings_of(channel))]
        return dict(zip(mails, mails, strict=True))
    target = _target_of(channel)
    return {channel_name(channel, target.channel): target.channel} if target else {}


def all_mails(mails: Sequence[str], channels: Sequence[AlarmChannel]) -> list[str]:
    """Return mail addresses and those of the mail channels, each once."""
    mail_channels = [channel for channel in channels if channel.kind == ChannelKind.MAIL]
    further = (mail for channel in mail_channels for mail in mails_of_channel(settings_of(channel)))
    return list(dict.fromkeys([*mails, *further]))


def targets_of(
    config: Config,
    mails: Sequence[str],
    group_urls: str | None,
    further: Sequence[str] = (),
    channels: Sequence[AlarmChannel] = (),
) -> dict[str, Target]:
    """Return the targets by name: mails, channels, URLs of the group, of others, of the installation.

    Mail addresses are left out if no mail server is configured. A URL that several have counts once.
    """
    targets: dict[str, Target] = {}
    if config.mail.host:
        for address in all_mails(mails, channels):
            targets[mail_name(address)] = Target("mail", partial(send_mail, config.mail, address))
    channel_urls = set[str]()
    for channel in channels:
        target = _target_of(channel)
        if target is not None and target.channel not in channel_urls:
            channel_urls.add(target.channel)
            targets[channel_name(channel, target.channel)] = target
    urls = [*split_urls(group_urls), *further, *config.alarm_urls]
    for number, url in enumerate(dict.fromkeys(urls), 1):
        if url not in channel_urls:
            targets[url_name(number, url)] = Target(url, partial(send_apprise, url))
    return targets


def _target_of(channel: AlarmChannel) -> Target | None:
    """Return the target of a channel; None for mail, and for one that cannot be read."""
    try:
        url = url_of(ChannelKind(channel.kind), settings_of(channel))
    except (ValueError, KeyError):
        logger.error("alarm channel unreadable channel_id=%s kind=%s", channel.id, channel.kind)
        return None
    if not url:
        return None
    return Target(url, partial(send_webhook if channel.kind == ChannelKind.WEBHOOK else send_apprise, url))


class Channels:
    """Thread pool per channel, so that one that hangs does not delay others; used by one thread."""

    def __init__(self) -> None:
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._open: dict[str, list[Future[str]]] = defaultdict(list)

    def submit(self, target: Target, message: Message) -> Future[str]:
        """Queue a message for a target; the future resolves to ``OK`` or the error."""
        if target.channel not in self._pools:
            self._pools[target.channel] = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="alarm")
        future = self._pools[target.channel].submit(target.send, message)
        self._open[target.channel].append(future)
        return future

    def tidy(self) -> None:
        """End the threads of idle channels."""
        for channel in list(self._pools):
            self._open[channel] = [future for future in self._open[channel] if not future.done()]
            if not self._open[channel]:
                self._pools.pop(channel).shutdown(wait=False)
                del self._open[channel]

    def close(self) -> None:
        """Drop queued messages; those being sent are not waited for."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
