"""Path of the run request, ``/run`` up to 3.4 and ``/trigger`` from 3.5 on; requests shared by probes."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.domain.enums import RouteStrategy
from app.domain.runs.evidence import Fate
from app.executors.calls import Peer
from app.pipeline import send
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.send import ProbeAnswer, Sender, SendOutcome
from app.settings.config import Config
from executor_client.wire.protocol import MSG_BAD_TOKEN, RunRequest
from tests.pipeline.steps import LONG_TIMEOUT_S, LOOPBACK, TOKEN
from tests.support.fake_executor import Answer, FakeExecutor, Fault

REQUEST = RunRequest(
    17, "reportHandler", "", "SERIAL_EXECUTION", 0, 90213, 1714530030000, "BEAN", "", 0, 0, 1
)


def unknown(path: str) -> Answer:
    return Answer.json(code=500, msg=f"invalid request, uri-mapping({path}) not found.")


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        yield running


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(home=tmp_path, executor_networks=LOOPBACK, trigger_timeout_s=LONG_TIMEOUT_S)


def run_at(address: str) -> ClaimedRun:
    peers = {address: Peer(address, "demo-executor", TOKEN)}
    return ClaimedRun(1, 90213, 17, 1, 1, 0, RouteStrategy.FIRST, address, peers, REQUEST, ())


def send_each(
    config: Config, *executors: FakeExecutor, concurrent: bool = False, run: ClaimedRun | None = None
) -> list[SendOutcome]:
    """Send a run to each executor, one after the other or concurrently."""

    async def work() -> list[SendOutcome]:
        sender = Sender(config)
        try:
            sends = [sender.send(run or run_at(item.address), item.address) for item in executors]
            return list(await asyncio.gather(*sends)) if concurrent else [await item for item in sends]
        finally:
            await sender.close()

    return asyncio.run(work())


def paths(executor: FakeExecutor) -> list[str]:
    return [request.target for request in executor.requests]


def test_a_run_goes_to_trigger_if_run_is_unknown_and_later_ones_at_once(
    config: Config, executor: FakeExecutor
) -> None:
    executor.respond("run", unknown("/run"))
    sent = send_each(config, executor, executor)
    assert [item.verdict.fate for item in sent] == [Fate.ACCEPTED, Fate.ACCEPTED]
    assert paths(executor) == ["/run", "/trigger", "/trigger"]
    assert {request.body for request in executor.requests} == {executor.requests[0].body}


def test_concurrent_first_runs_each_find_the_path(config: Config, executor: FakeExecutor) -> None:
    executor.respond("run", unknown("/run"))
    sent = send_each(config, *[executor] * 8, concurrent=True)
    assert [item.verdict.fate for item in sent] == [Fate.ACCEPTED] * 8
    assert sorted(paths(executor)) == ["/run"] * 8 + ["/trigger"] * 8


@pytest.mark.parametrize(
    ("token", "attempt", "fate"),
    [("", 2, Fate.UNKNOWN), ("", 1, Fate.REFUSED), (TOKEN, 2, Fate.REFUSED)],
    ids=["withheld", "never sent", "wrong"],
)
def test_a_withheld_token_does_not_decide_on_an_earlier_send(
    config: Config, executor: FakeExecutor, token: str, attempt: int, fate: Fate
) -> None:
    executor.respond("run", Answer.json(code=500, msg=MSG_BAD_TOKEN))
    peers = {executor.address: Peer(executor.address, "demo-executor", token)}
    (sent,) = send_each(config, executor, run=run_at(executor.address)._replace(peers=peers, attempt=attempt))
    assert (sent.verdict.fate, sent.verdict.text) == (fate, MSG_BAD_TOKEN)


def test_another_address_is_tried_at_run(config: Config, executor: FakeExecutor) -> None:
    executor.respond("run", unknown("/run"))
    with FakeExecutor() as other:
        send_each(config, executor, other)
        assert paths(other) == ["/run"]


def test_an_executor_that_returns_to_run_is_found_again(config: Config, executor: FakeExecutor) -> None:
    executor.respond("run", unknown("/run"), Answer.json())
    executor.respond("trigger", Answer.json(), unknown("/trigger"))
    sent = send_each(config, executor, executor, executor)
    assert [item.verdict.fate for item in sent] == [Fate.ACCEPTED] * 3
    assert paths(executor) == ["/run", "/trigger", "/trigger", "/run", "/run"]


def test_an_executor_that_knows_neither_path_refuses(config: Config, executor: FakeExecutor) -> None:
    executor.respond("run", unknown("/run"))
    executor.respond("trigger", unknown("/trigger"))
    for sent in send_each(config, executor, executor):
        assert (sent.verdict.fate, sent.verdict.text) == (
            Fate.REFUSED,
            "invalid request, uri-mapping(/run) not found.",
        )
    assert paths(executor) == ["/run", "/trigger"] * 2


@pytest.mark.parametrize(
    "answer",
    [
        Answer.json(code=500, msg="job handler [x] not found."),
        Answer.json(code=200, msg="uri-mapping(/run) not found"),
        unknown("/beat"),
        unknown("/run").but(status=502),
        Answer(b"uri-mapping(/run) not found"),
        Answer(fault=Fault.CLOSE),
    ],
    ids=["refused", "accepted", "other path", "proxy", "no envelope", "no answer"],
)
def test_no_other_answer_causes_a_second_request(
    config: Config, executor: FakeExecutor, answer: Answer
) -> None:
    executor.respond("run", answer)
    send_each(config, executor)
    assert paths(executor) == ["/run"]


def test_without_an_answer_from_trigger_the_outcome_is_unknown_and_nothing_is_sent_again(
    config: Config, executor: FakeExecutor
) -> None:
    executor.respond("run", unknown("/run"))
    executor.respond("trigger", Answer(fault=Fault.CLOSE), Answer.json())
    sent = send_each(config, executor, executor)
    assert [item.verdict.fate for item in sent] == [Fate.UNKNOWN, Fate.ACCEPTED]
    assert paths(executor) == ["/run", "/trigger", "/trigger"]


def probed(
    config: Config, runs: Sequence[ClaimedRun], answered: Callable[[], object] = lambda: None
) -> list[ProbeAnswer | None]:
    """Probe the address of each run, all at once; ``answered`` is called when all wait for an answer."""

    async def work() -> list[ProbeAnswer | None]:
        sender = Sender(config)
        try:
            probes = [asyncio.create_task(sender.probe(run, *run.peers)) for run in runs]
            await asyncio.sleep(0)
            answered()
            return list(await asyncio.gather(*probes))
        finally:
            await sender.close()

    return asyncio.run(work())


def busyover(address: str, job_id: int = 17, token: str = TOKEN) -> ClaimedRun:
    peers = {address: Peer(address, "demo-executor", token)}
    return run_at(address)._replace(peers=peers, address=None, job_id=job_id, route=RouteStrategy.BUSYOVER)


def failover(address: str, job_id: int = 17) -> ClaimedRun:
    return busyover(address, job_id)._replace(route=RouteStrategy.FAILOVER)


def test_concurrent_probes_with_the_same_question_share_a_request(
    config: Config, executor: FakeExecutor
) -> None:
    release = threading.Event()
    for action in ("beat", "idleBeat"):
        executor.respond(action, Answer(wait=release))
    address = executor.address
    runs = [failover(address), failover(address, 18), busyover(address), busyover(address)]
    others = [busyover(address, 18), busyover(address, token="another-token-of-some-length")]
    answers = probed(config, [*runs, *others], release.set)
    assert [answer is not None and answer.yes for answer in answers] == [True] * 6
    assert sorted(paths(executor)) == ["/beat", "/idleBeat", "/idleBeat", "/idleBeat"]


def test_a_probe_does_not_share_one_that_has_been_answered_or_waits_for_long(
    config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle executor may be busy by now; one that hangs gets as long from each run."""

    async def one_after_the_other() -> None:
        sender = Sender(config)
        try:
            for _ in range(2):
                await sender.probe(busyover(executor.address), executor.address)
        finally:
            await sender.close()

    asyncio.run(one_after_the_other())
    assert paths(executor) == ["/idleBeat"] * 2
    monkeypatch.setattr(send, "PROBE_MS", 0)
    probed(config, [failover(executor.address)] * 2)
    assert paths(executor)[2:] == ["/beat"] * 2


def test_the_others_hear_a_shared_probe_whose_first_run_no_longer_waits(
    config: Config, executor: FakeExecutor
) -> None:
    release = threading.Event()
    executor.respond("beat", Answer(wait=release))

    async def work() -> ProbeAnswer | None:
        sender = Sender(config)
        try:
            first, second = (
                asyncio.create_task(sender.probe(failover(executor.address), executor.address)) for _ in "12"
            )
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.sleep(0)
            release.set()
            return await second
        finally:
            await sender.close()

    answer = asyncio.run(work())
    assert answer is not None
    assert answer.yes
    assert paths(executor) == ["/beat"]


def test_remembered_addresses_are_limited(
    config: Config, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send, "TRIGGER_ADDRESSES_MAX", 1)
    executor.respond("run", unknown("/run"))
    with FakeExecutor() as other:
        other.respond("run", unknown("/run"))
        send_each(config, executor, other, other, executor)
        assert paths(other) == ["/run", "/trigger", "/trigger"]
    assert paths(executor) == ["/run", "/trigger"] * 2
