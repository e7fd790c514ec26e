"""Deliveries: messages on their way to their targets, their results, and when to retry."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from app.clock import Millis
from app.domain.enums import AlarmState
from app.domain.text.texts import N_
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services.alarms.channels import OK, Message
from app.services.alarms.muted_alarms import EndedMute

#: after a message about a job its further alarms are collected for this long
GROUP_MS: Millis = 300_000
#: how long a message waits for others to its channel, and how long its target may then take to accept it
DELIVERY_MS: Millis = 30_000
#: result of a target whose turn has not come, and the wait before the message is queued again
NOT_TRIED = N_("not sent yet: many messages are waiting")
NOT_TRIED_MS: Millis = 5_000
#: attempts for a failed target, and the wait before the second, doubled for each further one
ATTEMPTS_MAX = 4
RETRY_MS: Millis = 30_000


@dataclass(slots=True)
class Notice:
    """Message about this node; kept in memory only."""

    message: Message
    #: earliest time of the next attempt; None while it is being sent
    next_ms: Millis | None
    attempts: int = 0
    is_audited: bool = False
    #: targets that have it already
    delivered: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Subject:
    """Subject of one message: alarms of a job, the recovery of a job, an ended mute or a notice."""

    alarms: list[Alarm]
    job: Job | None
    group: Group | None
    logs: list[JobLog]
    #: targets that accepted the message at an earlier attempt
    delivered: set[str] = field(default_factory=set)
    #: URLs besides those of the group and of the installation
    urls: Sequence[str] = ()
    notice: Notice | None = None
    ended: EndedMute | None = None
    #: channels of the console
    channels: Sequence[AlarmChannel] = ()
    #: target name -> the message it gets instead of the common one
    own: Mapping[str, Message] = field(default_factory=dict)


@dataclass(slots=True)
class Delivery:
    """A message being sent: target name -> its pending result."""

    subject: Subject
    pending: dict[str, Future[str]]
    queued_ms: Millis
    #: target name -> until when its turn had not come
    _waited_ms: dict[str, Millis] = field(default_factory=dict)

    def has_ended(self, now_ms: Millis) -> bool:
        """Whether all targets have answered, or had their time; withdraws what has waited too long."""
        over = [self._is_over(name, future, now_ms) for name, future in self.pending.items()]
        return all(over)

    def _is_over(self, name: str, future: Future[str], now_ms: Millis) -> bool:
        since_ms = self._waited_ms.get(name, self.queued_ms)
        if future.running():
            return now_ms - since_ms >= DELIVERY_MS
        self._waited_ms[name] = now_ms
        return future.done() or (now_ms - self.queued_ms >= DELIVERY_MS and future.cancel())

    def results(self) -> dict[str, str]:
        """Return target name -> ``OK`` or the error, targets of earlier attempts included."""
        now = {name: _result_of(future) for name, future in self.pending.items()}
        return now | dict.fromkeys(self.subject.delivered, OK)


def failed_of(results: Mapping[str, str]) -> dict[str, str]:
    """Return the targets that failed, with their errors."""
    return {target: result for target, result in results.items() if result != OK}


def counts(results: Mapping[str, str]) -> bool:
    """Whether this was an attempt: every target that does not have the message was asked."""
    return NOT_TRIED not in results.values()


def delivered_of(outcome: str | None) -> set[str]:
    """Return the targets that accepted the message, from the JSON text of earlier results."""
    results = json.loads(outcome or "{}")
    return {target for target, result in results.items() if result == OK}


def next_state(attempts: int, results: Mapping[str, str], now_ms: Millis) -> tuple[AlarmState, Millis]:
    """Return the state after an attempt, and the time of the next attempt (of this one after the last)."""
    if not results:
        return AlarmState.SILENT, now_ms
    found = set(results.values())
    if found == {OK}:
        return AlarmState.SENT, now_ms
    if counts(results) and attempts >= ATTEMPTS_MAX:
        return AlarmState.PARTLY if OK in found else AlarmState.FAILED, now_ms
    if found <= {OK, NOT_TRIED}:
        return AlarmState.PENDING, now_ms + NOT_TRIED_MS
    return AlarmState.PENDING, now_ms + RETRY_MS * 2 ** (min(attempts, ATTEMPTS_MAX - 1) - 1)


def split_alarms(
    taken: Sequence[Alarm], *, last_ms: Millis, now_ms: Millis
) -> tuple[list[Alarm], list[Alarm], Millis]:
    """Split the alarms of a job into those to send now and those to put off; return both and until when.

    Retries are sent by themselves. ``last_ms`` is the time of the last message about the job.
    """
    fresh = [alarm for alarm in taken if alarm.attempts == 1 and not alarm.outcome]
    retried = [alarm for alarm in taken if alarm.attempts > 1 or alarm.outcome]
    if retried:
        return retried, fresh, now_ms + GROUP_MS
    if last_ms + GROUP_MS > now_ms:
        return [], fresh, last_ms + GROUP_MS
    return fresh, [], now_ms


def _result_of(future: Future[str]) -> str:
    if future.cancelled():
        return NOT_TRIED
    if not future.done():
        return f"no answer in {DELIVERY_MS // 1000} s"
    error = future.exception()
    return future.result() if error is None else type(error).__name__
