"""Who is told of an alarm, and over which channel. Each channel has its own queue: one that hangs delays no other."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from app.config import Config
from app.domain.alarm_urls import label, split_urls
from app.services.alarms.channels import Message, send_apprise, send_mail

#: messages on their way to one channel at once
AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Target:
    """Who gets a message: over which channel, and how."""

    channel: str
    send: partial[str]


def mails_of(text: str | None) -> list[str]:
    """Return the mail addresses of a job, which are separated by commas."""
    return [address.strip() for address in (text or "").split(",") if address.strip()]


def mail_name(address: str) -> str:
    """Return the name of a mail address among the targets."""
    return f"mail {address}"


def targets_of(
    config: Config, mails: Sequence[str], group_urls: str | None, further: Sequence[str] = ()
) -> dict[str, Target]:
    """Return who is to be told, by a name fit for people to read: mails, then the channels of a group, further ones, the installation's.

    Without a mail server nobody is told by mail.
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
    """A queue and threads of its own for each channel; used by one thread."""

    def __init__(self) -> None:
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._open: dict[str, list[Future[str]]] = defaultdict(list)

    def submit(self, target: Target, message: Message) -> Future[str]:
        """Let a message go out as soon as its channel is free."""
        if target.channel not in self._pools:
            self._pools[target.channel] = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="alarm")
        future = self._pools[target.channel].submit(target.send, message)
        self._open[target.channel].append(future)
        return future

    def tidy(self) -> None:
        """End the threads of channels that have nothing to do."""
        for channel in list(self._pools):
            self._open[channel] = [future for future in self._open[channel] if not future.done()]
            if not self._open[channel]:
                self._pools.pop(channel).shutdown(wait=False)
                del self._open[channel]

    def close(self) -> None:
        """Send nothing more."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
