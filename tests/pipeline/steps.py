"""Pipeline stages as single calls, each in its own transaction."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network
from typing import Any, TypeVar

from app.clock import Millis
from app.database.engine import transact
from app.domain.enums import NodeKind
from app.domain.runs.evidence import Fate, Verdict
from app.domain.runs.routing import RouteState
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline import registration
from app.pipeline.claim import ClaimBatch, claim
from app.pipeline.claimed_run import ClaimedRun, Claimer
from app.pipeline.complete import Completion, Result, Source, callback_result, complete
from app.pipeline.record import give_back, record
from app.pipeline.resolve import Resolver
from app.pipeline.send import SendOutcome
from app.settings.config import Config
from app.store.nodes import nodes
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.protocol import MSG_LOG_NOT_EXISTS, RegistryRequest
from tests.support.factories import T0, all_rows, make_job, make_run
from tests.support.fake_executor import Answer

T = TypeVar("T")
LEASE_MS = 5_000
TOKEN = "a-token-of-some-length"
#: trigger timeout of these tests: long, so that a slow machine loses no answers
LONG_TIMEOUT_S = 8
#: timeout of tests that wait for it
SHORT_TIMEOUT_S = 1
LOOPBACK = (ip_network("127.0.0.0/8"),)
#: address without a listener
GONE = "http://127.0.0.1:1111/"
#: answer of an executor that has no log of a run
ABSENT = Answer.json(
    content={"fromLineNum": 1, "toLineNum": 0, "logContent": MSG_LOG_NOT_EXISTS, "isEnd": True}
)


def claimer(node: str = "one", **changes: Any) -> Claimer:
    """Return a claimer with unlimited capacity and a fixed random source."""
    values = {
        "zone": "Asia/Shanghai",
        "tokens": (TOKEN,),
        "lease_ms": LEASE_MS,
        "probing_ms": 3_000,
        "routes": RouteState(random.Random(1)),
        "capacity": lambda _: 1000,
    }
    return Claimer(node=node, **{**values, **changes})


def as_due(fires: Sequence[Fire]) -> list[DueFire]:
    return [DueFire(fire.id, fire.job_id, fire.due_time) for fire in fires]


def claim_fires(
    fires: Sequence[Fire] | None = None, by: Claimer | None = None, *, now_ms: Millis = T0
) -> ClaimBatch:
    """Claim these fires (default: all of them)."""
    due = as_due(all_rows(Fire) if fires is None else fires)
    return transact(lambda session: claim(session, due, by or claimer(), now_ms=now_ms))


def claim_one(by: Claimer | None = None, *, now_ms: Millis = T0) -> ClaimedRun:
    """Claim the only fire."""
    (claimed,) = claim_fires(by=by, now_ms=now_ms).claims
    return claimed


def sent(
    claimed: ClaimedRun,
    fate: Fate = Fate.ACCEPTED,
    code: int | None = None,
    text: str = "",
    boot_id: str = "",
) -> SendOutcome:
    """Return the outcome of a send."""
    code = (200 if fate is Fate.ACCEPTED else 500) if code is None else code
    return SendOutcome(
        claimed,
        Verdict(fate, code, text),
        (f"Sent to: {claimed.address}", f"Result: {fate}, {text}"),
        3,
        boot_id,
    )


def record_sent(*outcomes: SendOutcome, node: str = "one", now_ms: Millis = T0) -> None:
    transact(lambda session: record(session, outcomes, node=node, now_ms=now_ms))


def give_back_all(*claims: ClaimedRun, node: str = "one") -> None:
    transact(lambda session: give_back(session, claims, node=node))


def end(*results: Result, now_ms: Millis = T0) -> Completion:
    """Complete some runs."""
    return transact(lambda session: complete(session, results, now_ms=now_ms))


def call_back(log_id: int, code: int = 200, message: str | None = None, *, now_ms: Millis = T0) -> bool:
    """Report a result as an executor does; True if it ended the run."""
    return bool(end(callback_result(log_id, code, message), now_ms=now_ms).run_ids)


def unresolve(log_id: int, *, now_ms: Millis = T0) -> bool:
    """End a run as unresolved."""
    return bool(
        end(Result(log_id, Source.RESOLVER, trigger_code=504, trace="no evidence"), now_ms=now_ms).run_ids
    )


def run_concurrently(*works: Callable[[], T]) -> list[T]:
    """Call functions in threads that start together; return their results, raise the first error."""
    barrier, answers, errors = threading.Barrier(len(works)), [], []

    def run(work: Callable[[], T]) -> None:
        barrier.wait()
        try:
            answers.append(work())
        except BaseException as exc:  # raised below, in the test's own thread
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return answers


@contextmanager
def resolving(config: Config, *, console: bool = True, **clocks: Callable[[], float]) -> Iterator[Any]:
    """Yield a function that probes all open runs: ``probe(5_000)`` does so 5 s after T0.

    It returns the wait until the next round.
    """
    resolver = Resolver(replace(config, executor_networks=LOOPBACK), tokens=(TOKEN,), **clocks)

    def probe(after_ms: Millis) -> Millis:
        if console:
            start_node("console", NodeKind.CONSOLE, T0 + after_ms)
        return resolver.tick(T0 + after_ms)

    try:
        yield probe
    finally:
        resolver.close()


def start_node(name: str, kind: NodeKind, now_ms: Millis) -> None:
    transact(
        lambda session: nodes.start_node(
            session, name, kind, version="1", token_fingerprint="", now_ms=now_ms
        )
    )


def open_run(address: str, state: str = "UNKNOWN", job: Job | None = None, **changes: Any) -> JobLog:
    """Commit a run that has been in doubt (UNKNOWN) or accepted since T0."""
    job_changes = {
        name: changes.pop(name)
        for name in ("delivery", "executor_fail_retry_count", "addresses")
        if name in changes
    }
    job = job or make_job(**{"addresses": address, **job_changes})
    log = {
        "executor_address": address,
        "trigger_code": 0 if state == "UNKNOWN" else 200,
        "trigger_msg": "sent",
    }
    since = {"lease_until": T0} if state == "UNKNOWN" else {"accepted_ms": T0}
    return make_run(
        job, log=log, **{"state": state, "deadline_ms": T0, "sent_ms": T0, "owner": "one", **since, **changes}
    )


def register(
    address: str, boot_id: str = "boot-1", app_name: str = "demo-executor", now_ms: Millis = T0
) -> None:
    request, capabilities = (
        RegistryRequest("EXECUTOR", app_name, address),
        Capabilities(bool(boot_id), boot_id),
    )
    transact(lambda session: registration.register(session, request, capabilities, now_ms=now_ms))


class Signal:
    """Stub of an event: ``wait`` runs a function before the answer is sent."""

    def __init__(self, work: Any) -> None:
        self.work, self.called = work, False

    def wait(self, _timeout_s: float) -> bool:
        self.called = self.work()
        return True
