"""Candidate search: when each candidate is probed, and which is taken. No executors and no clock."""

import asyncio
from typing import Any

import pytest

from app.domain.enums import RouteStrategy
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.send import ProbeAnswer
from executor_client.wire.protocol import RunRequest
from workers.dispatch import candidates
from workers.dispatch.candidates import CandidateSearch

A, B, C = (f"http://10.0.0.{number}:9999/" for number in (1, 2, 3))
RUN = RunRequest(7, "h", "", "SERIAL_EXECUTION", 0, 1, 0, "BEAN", "", 0, 0, 1)


class Answers:
    """Stub of the sender: a probe waits until its answer is given."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._answers: dict[str, asyncio.Future[bool | None]] = {}

    async def probe(self, _claimed: ClaimedRun, address: str) -> ProbeAnswer | None:
        self.asked.append(address)
        answer = self._answers[address] = asyncio.get_running_loop().create_future()
        yes = await answer
        if yes is None:
            return None
        return ProbeAnswer(yes, f"Probe beat {address}: {'yes' if yes else 'no'}", unreachable=not yes)

    async def give(self, *answers: tuple[str, bool | None]) -> None:
        """Give answers at once, and let the search continue; None: the probe could not be sent."""
        for address, yes in answers:
            self._answers[address].set_result(yes)
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def search(answers: Any) -> CandidateSearch:
    peers: dict[str, Any] = {A: None, B: None, C: None}
    return CandidateSearch(
        answers, ClaimedRun(1, 1, 7, 1, 1, 0, RouteStrategy.FAILOVER, None, peers, RUN, ())
    )


def next_candidate(searching: CandidateSearch, *, stopping: bool = False) -> "asyncio.Task[str | None]":
    return asyncio.create_task(searching.next_candidate(stopping=lambda: stopping))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next candidate is probed at once, without waiting for the previous one."""
    monkeypatch.setattr(candidates, "PROBE_S", 0.0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next candidate is probed only after the previous one has refused."""
    monkeypatch.setattr(candidates, "PROBE_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_the_next_is_probed_as_soon_as_the_last_has_refused() -> None:
    async def scenario() -> None:
        answers = Answers()
        searching = search(answers)
        found = next_candidate(searching)
        await settle()
        assert answers.asked == [A]
        await answers.give((A, False))
        assert answers.asked == [A, B]
        await answers.give((B, True))
        assert await found == B
        assert answers.asked == [A, B]
        assert searching.unreachable == [A]

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("willing", "chosen"), [((A, B), A), ((B, A), A), ((C, B), B), ((C,), C)])
def test_the_first_willing_candidate_in_order_is_taken(willing: tuple[str, ...], chosen: str) -> None:
    async def scenario() -> None:
        answers = Answers()
        found = next_candidate(search(answers))
        await asyncio.sleep(0.01)
        assert answers.asked == [A, B, C]
        await answers.give(*((address, True) for address in willing))
        assert await found == chosen

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
def test_a_slow_candidate_is_still_heard_after_the_others_were_probed() -> None:
    async def scenario() -> None:
        answers = Answers()
        searching = search(answers)
        found = next_candidate(searching)
        await asyncio.sleep(0.01)
        await answers.give((B, False), (C, False))
        assert not found.done()
        await answers.give((A, True))
        assert await found == A

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
def test_after_a_refused_run_the_next_willing_one_is_taken_and_finally_none() -> None:
    async def scenario() -> None:
        answers = Answers()
        searching = search(answers)
        first = next_candidate(searching)
        await asyncio.sleep(0.01)
        await answers.give((B, True))
        assert await first == B
        second = next_candidate(searching)
        await answers.give((A, True))
        assert await second == A
        third = next_candidate(searching)
        await answers.give((C, False))
        assert await third is None
        assert [line.split()[2] for line in searching.lines] == [f"{address}:" for address in (B, A, C, A, C)]

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
def test_unanswered_candidates_are_named_before_the_run_is_sent() -> None:
    async def scenario() -> None:
        answers = Answers()
        searching = search(answers)
        found = next_candidate(searching)
        await asyncio.sleep(0.01)
        await answers.give((C, True))
        assert await found == C
        unanswered = [f"Probe beat {address}: no, no answer before another was chosen" for address in (A, B)]
        assert [line.rpartition(" (")[0] for line in searching.lines[1:]] == unanswered
        again = next_candidate(searching)
        await answers.give((B, True))
        assert await again == B
        assert searching.lines[3:] == [f"Probe beat {B}: yes"], "A is not named again"
        searching.close()
        await settle()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("others", [(), ((B, False), (C, False)), ((B, True),)])
def test_a_candidate_that_could_not_be_probed_ends_the_search(others: tuple[tuple[str, bool], ...]) -> None:
    async def scenario() -> None:
        answers = Answers()
        searching = search(answers)
        found = next_candidate(searching)
        await asyncio.sleep(0.01)
        await answers.give((A, None), *others)
        assert await found is None
        assert searching.is_given_up
        assert searching.unreachable == []
        searching.close()

    asyncio.run(scenario())


def test_a_stop_probes_no_candidate() -> None:
    async def scenario() -> None:
        answers = Answers()
        assert await next_candidate(search(answers), stopping=True) is None
        assert answers.asked == []

    asyncio.run(scenario())
