"""Delivery of alarm messages: pending results per target, retries, storage of the outcome."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import transact
from app.database.faults import data_fault
from app.domain.access.permissions import system_actor
from app.domain.enums import AlarmState
from app.domain.text.texts import N_
from app.models.alarm import Alarm
from app.services.alarms.channels import OK, Message
from app.services.alarms.targets import Channels, Target, displayed, is_among
from app.services.auditing import audit
from app.store.accounts import audit as audit_store

logger = logging.getLogger(__name__)

#: after a message about a job its further alarms are collected for this long
GROUP_MS: Millis = 300_000
#: time for one attempt, after which a message may be sent again, by any node
LEASE_MS: Millis = 90_000
#: how long a message waits for others to its channel, and how long its target may then take to accept it
DELIVERY_MS: Millis = 30_000
#: result of a target whose turn has not come, and the wait before the message is queued again
NOT_TRIED = N_("not sent yet: many messages are waiting")
NOT_TRIED_MS: Millis = 5_000
#: attempts for a failed target, and the wait before the second, doubled for each further one
ATTEMPTS_MAX = 4
RETRY_MS: Millis = 30_000
#: audited action: a message that finally failed, of a job, a group or a node
DELIVERY_FAILED = "alarm.failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of an attempt by target name, those of earlier attempts included, and what follows."""

    results: Mapping[str, str]
    state: AlarmState
    #: time of the next attempt, of this one after the last
    next_ms: Millis
    now_ms: Millis

    @property
    def failed(self) -> dict[str, str]:
        """The targets that failed, with their errors."""
        return {name: result for name, result in self.results.items() if result != OK}

    @property
    def counts(self) -> bool:
        """Whether this was an attempt: every target that does not have the message was asked."""
        return NOT_TRIED not in self.results.values()

    def text(self, further: Mapping[str, str] = {}) -> str:
        """Return the results, and further ones, as JSON."""
        return json.dumps({**self.results, **further}, ensure_ascii=False)

    def without_errors(self) -> "Outcome":
        """Return the outcome without the texts of errors, which the database may refuse."""
        plain = {name: text if text in (OK, NOT_TRIED) else "failed" for name, text in self.results.items()}
        return replace(self, results=plain)


@dataclass(slots=True)
class Delivery:
    """A message being sent: an alarm, a recovery, the summary of a mute or a notice of a node."""

    message: Message
    targets: Mapping[str, Target]
    #: number of this attempt, from 1 on
    attempt: int
    #: kind and id of the object on which a final failure is audited; None: deleted
    about: tuple[str, int] | None
    #: stores the outcome, in a transaction that may be repeated
    store: Callable[[Session, Outcome], object]
    #: targets that accepted the message at an earlier attempt
    accepted_by: set[str] = field(default_factory=set)
    #: target name -> the message it gets instead of the common one
    message_by_target: Mapping[str, Message] = field(default_factory=dict)
    #: called once the outcome is stored
    after: Callable[[Outcome], object] | None = None
    #: target name -> its pending result
    pending: dict[str, Future[str]] = field(default_factory=dict)
    queued_ms: Millis = 0
    #: target name -> until when its turn had not come
    _waited_ms: dict[str, Millis] = field(default_factory=dict)

    def send(self, channels: Channels, now_ms: Millis) -> None:
        """Queue the message for all targets but those that have it."""
        self.queued_ms = now_ms
        for name, target in self.targets.items():
            if not is_among(name, self.accepted_by):
                self.pending[name] = channels.submit(target, self.message_by_target.get(name, self.message))

    def finish(self, node: str, now_ms: Millis) -> None:
        """Store the outcome; the delivery may then be removed, and its message is not sent again.

        An outcome that the database refuses is stored without the texts of errors, or not at all: others must
        not wait for it.
        """
        about, results = self.about or ("job", None), self.results()
        outcome = Outcome(results, *next_state(self.attempt, results, now_ms), now_ms)
        for answer in (outcome, outcome.without_errors()):
            try:
                transact(partial(self._store, outcome=answer, node=node))
                break
            except DBAPIError as exc:
                if (reason := data_fault(exc)) is None:
                    raise
                logger.error("result not stored object=%s object_id=%s database_error=%r", *about, reason)
        if self.after is not None:
            self.after(outcome)
        if outcome.failed:
            logger.warning("alarm not delivered object=%s object_id=%s failed=%s", *about, outcome.failed)

    def _store(self, session: Session, *, outcome: Outcome, node: str) -> None:
        """Store the outcome and audit a final failure, unless the latest entry of the object is the same."""
        self.store(session, outcome)
        if self.about is None or outcome.state not in (AlarmState.FAILED, AlarmState.PARTLY):
            return
        failed = {displayed(name): error for name, error in outcome.failed.items()}
        latest = audit_store.list_of_object(session, *self.about, limit=1)
        if not any(entry.action == DELIVERY_FAILED and audit.changes_of(entry) == failed for entry in latest):
            actor, now_ms = system_actor(node), outcome.now_ms
            audit.record(
                session, DELIVERY_FAILED, actor=actor, now_ms=now_ms, target=self.about, changes=failed
            )

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
        return now | dict.fromkeys(self.accepted_by, OK)


def delivered_of(outcome: str | None) -> set[str]:
    """Return the targets that accepted the message, from the JSON text of earlier results."""
    results = json.loads(outcome or "{}")
    return {target for target, result in results.items() if result == OK}


def next_state(attempts: int, results: Mapping[str, str], now_ms: Millis) -> tuple[AlarmState, Millis]:
    """Return the state after an attempt, and the time of the next attempt (of this one after the last)."""
    if not results:
        return AlarmState.SILENT, now_ms
    answers = set(results.values())
    if answers == {OK}:
        return AlarmState.SENT, now_ms
    if NOT_TRIED not in answers and attempts >= ATTEMPTS_MAX:
        return AlarmState.PARTLY if OK in answers else AlarmState.FAILED, now_ms
    if answers <= {OK, NOT_TRIED}:
        return AlarmState.PENDING, now_ms + NOT_TRIED_MS
    return AlarmState.PENDING, now_ms + RETRY_MS * 2 ** (min(attempts, ATTEMPTS_MAX - 1) - 1)


def split_alarms(
    alarms: Sequence[Alarm], *, last_ms: Millis, now_ms: Millis
) -> tuple[list[Alarm], list[Alarm], Millis]:
    """Split the alarms of a job into those to send now and those to put off; return both and until when.

    Retries are sent by themselves. ``last_ms`` is the time of the last message about the job.
    """
    fresh = [alarm for alarm in alarms if alarm.attempts == 1 and not alarm.outcome]
    retries = [alarm for alarm in alarms if alarm.attempts > 1 or alarm.outcome]
    if retries:
        return retries, fresh, now_ms + GROUP_MS
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
