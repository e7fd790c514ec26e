"""Dispatcher, resolver and callback together: routes, lanes and the trace of a run."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.clock import Millis, now_ms
from app.database.engine import transact
from app.domain.enums import NodeKind
from app.domain.runs.trigger_report import TRACE_MAX
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.record import fix_address
from app.pipeline.resolve import Resolver
from app.settings.config import Config
from app.store.nodes import nodes
from executor_client.wire.protocol import MSG_LOG_NOT_EXISTS
from tests.pipeline.steps import LOOPBACK, SHORT_TIMEOUT_S, TOKEN, as_due, call_back
from tests.support.eventually import eventually
from tests.support.factories import all_rows, make_fire, make_job, only_row
from tests.support.fake_executor import Answer, FakeExecutor, Fault
from tests.support.plan import every_database
from tests.workers.dispatching import dispatching
from workers.dispatch import send_task

DEAD = "http://127.0.0.1:1111/"
#: runs of a healthy executor start within this time, even if others hang
LAG_MAX_MS: Millis = 2_500


@pytest.fixture
def executors() -> Iterator[list[FakeExecutor]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeExecutor()) for _ in range(3)]


def group_of(members: list[FakeExecutor]) -> str:
    return ",".join(member.address for member in members)


def due_now(job: Job, count: int = 1, **more: Any) -> list[Fire]:
    return [make_fire(job, due_time=now_ms(), owner="one", **more) for _ in range(count)]


def ended(count: int) -> bool:
    """Whether this many sends have an outcome, good or bad."""
    return len(all_rows(JobLog)) == count and all(fire.state == "ACCEPTED" for fire in all_rows(Fire))


@every_database
@pytest.mark.parametrize("trigger_type", ["CRON", "MISFIRE", "MANUAL", "PARENT", "API"])
def test_a_broadcast_is_one_run_per_shard_and_an_unreachable_shard_fails_alone(
    database: str, config: Config, executors: list[FakeExecutor], trigger_type: str
) -> None:
    addresses = f"{executors[0].address},{DEAD},{executors[1].address}"
    job = make_job(
        addresses=addresses,
        executor_route_strategy="SHARDING_BROADCAST",
        executor_fail_retry_count=1,
        retry_interval_s=60,
    )
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(due_now(job, trigger_type=trigger_type)))
        eventually(lambda: sorted(log.trigger_code for log in all_rows(JobLog)) == [200, 200, 500])
    shards = {
        log.executor_sharding_param: (log.executor_address, log.trigger_code) for log in all_rows(JobLog)
    }
    assert shards == {
        "0/3": (executors[0].address, 200),
        "1/3": (DEAD, 500),
        "2/3": (executors[1].address, 200),
    }
    retry = only_row(Fire, trigger_type="RETRY")
    assert (retry.sharding_param, retry.fail_retry_count) == ("1/3", 0)
    assert len(all_rows(Fire, state="ACCEPTED")) == 2


@every_database
def test_the_retry_of_an_unreachable_shard_targets_its_own_index(
    database: str, config: Config, executors: list[FakeExecutor]
) -> None:
    job = make_job(addresses=group_of(executors), executor_route_strategy="SHARDING_BROADCAST")
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(due_now(job, trigger_type="RETRY", sharding_param="1/3", fail_retry_count=0)))
        eventually(lambda: ended(1))
    (request,) = executors[1].requests
    assert (request.json["broadcastIndex"], request.json["broadcastTotal"]) == (1, 3)
    assert executors[0].requests == executors[2].requests == []


@pytest.mark.parametrize("route", ["ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"])
def test_restarts_and_other_nodes_spread_runs_over_all_executors(
    database: str, config: Config, executors: list[FakeExecutor], route: str
) -> None:
    """Twelve restarts of two nodes: each executor gets its share, ROUND starts at random."""
    jobs = [make_job(addresses=group_of(executors), executor_route_strategy=route) for _ in range(3)]
    sent = 0
    for _ in range(6):
        with dispatching(config, "one") as first_node, dispatching(config, "two") as second_node:
            for dispatcher in (first_node, second_node):
                sent += len(jobs)
                dispatcher.offer(as_due([fire for job in jobs for fire in due_now(job)]))
                eventually(lambda count=sent: ended(count))
    assert sum(len(executor.requests) for executor in executors) == sent == 36
    for job in jobs:
        share = Counter(log.executor_address for log in all_rows(JobLog, job_id=job.id))
        assert max(share.values()) <= (11 if route == "ROUND" else 6), share


@pytest.mark.parametrize(("route", "action"), [("FAILOVER", "beat"), ("BUSYOVER", "idleBeat")])
def test_a_candidate_that_does_not_answer_is_skipped_after_300_ms(
    database: str, config: Config, executors: list[FakeExecutor], route: str, action: str
) -> None:
    silent, refusing, taking = executors
    silent.respond(action, Answer(fault=Fault.SILENCE))
    refusing.respond("run", Answer.json(500, msg="no such handler"))
    job = make_job(addresses=f"{DEAD},{group_of(executors)}", executor_route_strategy=route)
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(due_now(job)))
        eventually(lambda: all_rows(JobLog) and ended(1))
    assert [request.action for request in silent.requests] == [action]
    lines = (only_row(JobLog).trigger_msg or "").splitlines()
    probes = [line for line in lines if line.startswith("Probe")]
    assert f"Probe {action} {DEAD}: no, " in probes[0]
    assert probes[1].startswith(f"Probe {action} {refusing.address}: yes")
    waited = re.fullmatch(
        rf"Probe {action} {silent.address}: no, no answer before another was chosen \((\d+) ms\)", probes[2]
    )
    assert waited is not None
    assert 290 <= int(waited[1]) < 3_000
    assert lines.index(waited[0]) < lines.index(f"Sent to: {refusing.address}")
    assert "Result: refused, answered" in lines[lines.index(f"Sent to: {refusing.address}") + 1]
    assert f"Sent to: {taking.address}" in lines
    assert only_row(Fire).address == taking.address


@every_database
def test_a_run_is_given_back_if_its_candidate_cannot_be_committed(
    database: str,
    config: Config,
    executors: list[FakeExecutor],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = [OperationalError("UPDATE", {}, Exception("database is locked"))]

    def fix(*arguments: Any, **named: Any) -> bool:
        if failures:
            raise failures.pop()
        return fix_address(*arguments, **named)

    monkeypatch.setattr(send_task, "fix_address", fix)
    with dispatching(config) as dispatcher:
        dispatcher.offer(
            as_due(due_now(make_job(addresses=group_of(executors), executor_route_strategy="FAILOVER")))
        )
        eventually(lambda: all_rows(JobLog) and ended(1))
    assert len(executors[0].requests_for("run")) == 1
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(("route", "action"), [("FAILOVER", "beat"), ("BUSYOVER", "idleBeat")])
def test_the_only_candidate_may_be_slow(
    database: str, config: Config, executors: list[FakeExecutor], route: str, action: str
) -> None:
    slow = executors[0]

    class After:
        def wait(self, _timeout_s: float) -> bool:
            return threading.Event().wait(0.6)

    slow.respond(action, Answer(wait=After()))
    with dispatching(config) as dispatcher:
        dispatcher.offer(
            as_due(due_now(make_job(addresses=f"{DEAD},{slow.address}", executor_route_strategy=route)))
        )
        eventually(lambda: all_rows(JobLog) and only_row(JobLog).trigger_code)
    assert (only_row(JobLog).trigger_code, only_row(JobLog).executor_address) == (200, slow.address)


@every_database
def test_a_change_of_candidate_is_committed_before_it_is_sent(
    database: str, config: Config, executors: list[FakeExecutor]
) -> None:
    seen: list[tuple[str, str | None]] = []

    class ReadRow:
        """Event stub that reads the row while the candidate handles the request."""

        def wait(self, _timeout_s: float) -> bool:
            seen.append((only_row(Fire).state, only_row(Fire).address))
            return True

    first, second, _ = executors
    first.respond("run", Answer.json(500, msg="no").but(wait=ReadRow()))
    second.respond("run", Answer().but(wait=ReadRow()))
    with dispatching(config) as dispatcher:
        dispatcher.offer(
            as_due(due_now(make_job(addresses=group_of(executors), executor_route_strategy="FAILOVER")))
        )
        eventually(lambda: all_rows(JobLog) and ended(1))
    assert seen == [("SENDING", first.address), ("SENDING", second.address)]


def test_a_hanging_slow_or_dead_executor_does_not_delay_others(
    database: str, config: Config, executors: list[FakeExecutor]
) -> None:
    """80 runs each for a hanging, a slow (2.9 s) and a dead executor, 100 for a healthy one."""
    hanging, slow, healthy = executors
    release, pause = threading.Event(), threading.Event()
    hanging.respond("run", Answer(wait=release))

    class After:
        def wait(self, _timeout_s: float) -> bool:
            return pause.wait(2.9)

    slow.respond("run", Answer(wait=After()))
    jobs = [make_job(addresses=address) for address in (hanging.address, slow.address, DEAD)]
    job = make_job(addresses=healthy.address)
    with dispatching(config, trigger_timeout_s=3) as dispatcher:
        began = time.monotonic()
        dispatcher.offer(as_due([fire for disturbed in jobs for fire in due_now(disturbed, 80)]))
        eventually(lambda: min(len(hanging.requests), len(slow.requests)) >= 32)
        lags: list[Millis] = []
        for number in range(1, 11):
            due_ms = now_ms()
            dispatcher.offer(as_due(due_now(job, 10)))
            eventually(lambda count=number * 10: len(healthy.requests) == count)
            lags.append(now_ms() - due_ms)
        time_outs = int((time.monotonic() - began) / 3)
        assert len(hanging.requests) <= 32 * (1 + time_outs), "not more than its slots"
        release.set()
        pause.set()
    assert max(lags) < LAG_MAX_MS, lags


@every_database
def test_the_trace_of_a_run_is_complete_and_bounded(
    database: str, config: Config, executors: list[FakeExecutor]
) -> None:
    hanging = executors[0]
    hanging.respond("run", Answer(fault=Fault.SILENCE), Answer.json(msg="x" * 50_000))
    hanging.respond(
        "log",
        Answer.json(
            content={"fromLineNum": 1, "toLineNum": 0, "logContent": MSG_LOG_NOT_EXISTS, "isEnd": True}
        ),
    )
    job = make_job(addresses=f"{DEAD},{hanging.address}", executor_route_strategy="FAILOVER")
    resolver = Resolver(replace(config, executor_networks=LOOPBACK), tokens=(TOKEN,))

    def probe(after_ms: Millis) -> None:
        at_ms = now_ms() + after_ms
        transact(
            lambda session: nodes.start_node(
                session, "c", NodeKind.CONSOLE, version="", token_fingerprint="", now_ms=at_ms
            )
        )
        resolver.tick(at_ms)

    with dispatching(config, trigger_timeout_s=SHORT_TIMEOUT_S) as dispatcher:
        dispatcher.offer(as_due(due_now(job)))
        eventually(lambda: [fire.state for fire in all_rows(Fire)] == ["UNKNOWN"])
        probe(6_000)
        probe(12_000)
        eventually(lambda: [fire.state for fire in all_rows(Fire)] == ["ACCEPTED"])
    resolver.close()
    run = only_row(JobLog)
    assert call_back(run.id, 200, "done")
    patterns = [
        r"Trigger: CRON, due \d{4}-\d\d-\d\d .*, seen by node one",
        r"Claimed: .* \(\d+ ms after due\), node one",
        rf"Addresses: entered \[{DEAD}, {hanging.address}\]",
        r"Route: FAILOVER; block strategy: SERIAL_EXECUTION; timeout: 0 s; retries left: 0",
        r">>> trigger <<<",
        rf"Probe beat {DEAD}: no, .*",
        rf"Probe beat {hanging.address}: yes, code 200 .*",
        rf"Sent to: {hanging.address}",
        r"Result: unknown, no answer after \d+ ms, code 500: no answer in time",
        r"Resolver: send again, idle and without a log in 2 checks, 5000 ms apart: not started",
        r">>> sent again, attempt 2 <<<",
        r"Claimed: .*, node one",
        rf"Sent to: {hanging.address}",
        r"Result: accepted, answered after \d+ ms, code 200: x+",
    ]
    lines = (only_row(JobLog).trigger_msg or "").splitlines()
    assert len(lines) == len(patterns), lines
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.fullmatch(pattern, line), (line, pattern)
    assert len(only_row(JobLog).trigger_msg or "") <= TRACE_MAX
    logs = [request.json["logId"] for request in hanging.requests_for("run")]
    assert logs == [run.id, run.id]
    assert (only_row(JobLog).handle_code, only_row(JobLog).handle_msg) == (200, "done")
