"""Probes of several executors: neither an error nor a wait at one delays or ends those of others."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.executors.calls import Peer
from app.executors.gateway import Gateway
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline.resolve import PROBES_AT_ONCE
from app.settings.config import Config
from tests.pipeline.steps import ABSENT, open_run, resolving
from tests.support.factories import make_job, only_row
from tests.support.fake_executor import Answer, FakeExecutor, Fault


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        running.respond("log", ABSENT)
        yield running


@pytest.mark.parametrize("probe_of", ["beat", "idle_beat", "read_log"])
def test_an_error_in_a_probe_does_not_end_those_of_others(
    database: str,
    config: Config,
    executor: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    probe_of: str,
) -> None:
    call = getattr(Gateway, probe_of)

    def fail_at_one(gateway: Gateway, peer: Peer, *args: Any, **options: Any) -> Any:
        if peer.address != executor.address:
            raise KeyError("an error no one has thought of")
        return call(gateway, peer, *args, **options)

    monkeypatch.setattr(Gateway, probe_of, fail_at_one)
    with FakeExecutor() as other:
        other.respond("log", ABSENT)
        broken, healthy = (
            open_run(each.address, job=make_job(addresses=each.address)) for each in (other, executor)
        )
        with resolving(config) as probe:
            probe(20_000)
    assert only_row(Fire, log_id=healthy.id).probe_count == 1
    assert only_row(JobLog, id=broken.id).trigger_msg.endswith("the executor is inconclusive")
    assert f"probe failed address={other.address}" in caplog.text


def test_a_hanging_executor_does_not_delay_probes_of_others(
    database: str, config: Config, executor: FakeExecutor
) -> None:
    with FakeExecutor() as hanging:
        hanging.respond("idleBeat", Answer(fault=Fault.SILENCE))
        for _ in range(PROBES_AT_ONCE * 5):
            open_run(hanging.address, job=make_job(addresses=hanging.address))
        other = open_run(executor.address)
        with resolving(config) as probe:
            probe(5_000)
        assert len(hanging.requests_for("idleBeat")) <= PROBES_AT_ONCE
    assert only_row(Fire, log_id=other.id).probe_count == 1
