"""Alarm targets: mail addresses and Apprise URLs, each channel with its own queue."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from app.config import Config
from app.domain.alarm_urls import label, split_urls
from app.domain.mail_addresses import mails_of
from app.services.alarms.channels import Message, send_apprise, send_mail

__all__ = ["mails_of"]

#: messages sent to one channel at the same time
AT_ONCE = 2


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


def targets_of(
    config: Config, mails: Sequence[str], group_urls: str | None, further: Sequence[str] = ()
) -> dict[str, Target]:
    """Return the targets by display name: mails, channels of the group, ``further``, the installation's.

    Mail addresses are left out if no mail server is configured.
    """
    targets: dict[str, Target] = {}
    if config.mail.host:
        for address in dict.fromkeys(mails):
            targets[mail_name(address)] = Target("mail", partial(send_mail, config.mail, address))
    urls = [*split_urls(group_urls), *further, *config.alarm_urls]
    for number, url in enumerate(dict.fromkeys(urls), 1):
        targets[f"{number} {label(url)}"] = Target(url, partial(send_apprise, url))
    return targets


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
