"""The stages of the pipeline as single calls, each in a transaction of its own."""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.clock import Millis
from app.db import transact
from app.domain.evidence import Fate, Verdict
from app.domain.planning import DueFire
from app.domain.routing import RouteState
from app.models.fire import Fire
from app.pipeline.claim import ClaimBatch, Claimed, Claimer, claim
from app.pipeline.complete import Completion, Result, Source, callback_result, complete
from app.pipeline.record import give_back, record
from app.pipeline.send import Sent
from tests.factories import T0, all_rows

T = TypeVar("T")
LEASE_MS = 5_000
TOKEN = "a-token-of-some-length"


def claimer(node: str = "one", **changes: Any) -> Claimer:
    """Return a claimer with room for everything and a fixed random source."""
    values = {
        "zone": "Asia/Shanghai",
        "token": TOKEN,
        "lease_ms": LEASE_MS,
        "probing_ms": 3_000,
        "routes": RouteState(random.Random(1)),
        "room": lambda _: 1000,
    }
    return Claimer(node=node, **{**values, **changes})


def as_due(fires: Sequence[Fire]) -> list[DueFire]:
    return [DueFire(fire.id, fire.job_id, fire.due_time) for fire in fires]


def claim_fires(fires: Sequence[Fire] | None = None, who: Claimer | None = None, *, now_ms: Millis = T0) -> ClaimBatch:
    """Claim these fires (default: all there are)."""
    due = as_due(all_rows(Fire) if fires is None else fires)
    return transact(lambda session: claim(session, due, who or claimer(), now_ms=now_ms))


def claim_one(who: Claimer | None = None, *, now_ms: Millis = T0) -> Claimed:
    """Claim the one fire there is."""
    (claimed,) = claim_fires(who=who, now_ms=now_ms).claimed
    return claimed


def sent(claimed: Claimed, fate: Fate = Fate.ACCEPTED, code: int | None = None, text: str = "", boot_id: str = "") -> Sent:
    """Return what came of a send."""
    code = (200 if fate is Fate.ACCEPTED else 500) if code is None else code
    return Sent(claimed, Verdict(fate, code, text), (f"Sent to: {claimed.address}", f"Result: {fate}, {text}"), 3, boot_id)


def record_sent(*outcomes: Sent, node: str = "one", now_ms: Millis = T0) -> None:
    transact(lambda session: record(session, outcomes, node=node, now_ms=now_ms))


def give_back_all(*claims: Claimed, node: str = "one") -> None:
    transact(lambda session: give_back(session, claims, node=node))


def end(*results: Result, now_ms: Millis = T0) -> Completion:
    """Complete some runs."""
    return transact(lambda session: complete(session, results, now_ms=now_ms))


def call_back(log_id: int, code: int = 200, message: str | None = None, *, now_ms: Millis = T0) -> bool:
    """Report a result as an executor does; True where it ended the run."""
    return bool(end(callback_result(log_id, code, message), now_ms=now_ms).won)


def unresolve(log_id: int, *, now_ms: Millis = T0) -> bool:
    """End a run whose fate nobody could find out."""
    return bool(end(Result(log_id, Source.RESOLVER, trigger_code=504, story="no evidence"), now_ms=now_ms).won)


def at_once(*works: Callable[[], T]) -> list[T]:
    """Run some calls in threads that begin together; return what they return, raise what one raised."""
    barrier, answers, errors = threading.Barrier(len(works)), [], []

    def run(work: Callable[[], T]) -> None:
        barrier.wait()
        try:
            answers.append(work())
        except BaseException as exc:  # noqa: BLE001 - raised below, in the test's own thread
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return answers
