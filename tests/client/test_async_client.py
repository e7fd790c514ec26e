"""The client for asyncio: the same calls, in bounded threads."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from app.clock import now_ms
from executor_client import AsyncClient
from executor_client.api.errors import RunNotEnded, UnknownName
from tests.pipeline.steps import call_back, claim_fires, record_sent, sent
from tests.support.client import LOG, LONG_LOG_STARTS, Console, long_log
from tests.support.factories import make_group, make_job, make_run
from tests.support.fake_executor import FakeExecutor


def started() -> list[int]:
    claims = claim_fires(now_ms=now_ms()).claims
    record_sent(*(sent(each) for each in claims), now_ms=now_ms())
    return [each.log_id for each in claims]


def run_async(program: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(program, 60))


def test_many_coroutines_wait_with_few_threads(console: Console) -> None:
    make_job(executor_handler="close")

    async def program() -> None:
        async with AsyncClient(transport=console.transport, threads=2) as client:
            runs = await asyncio.gather(*(client.trigger("close", {"n": n}) for n in range(6)))
            numbers = await asyncio.to_thread(started)
            waits = asyncio.gather(*(run.wait(timeout=30, check=True) for run in runs))
            for number in numbers:
                await asyncio.to_thread(call_back, number, 200, "done")
            assert {run.message for run in await waits} == {"done"}
            assert len([job async for job in client.jobs()]) == 1
            assert len([run async for run in client.runs("close", limit=4)]) == 4

    run_async(program())


def test_a_job_is_made_started_and_stopped(console: Console) -> None:
    make_group(app_name="shop")

    async def program() -> None:
        async with AsyncClient(transport=console.transport) as client:
            job = await client.create_job("close", group="shop", cron="0 0 3 * * ?")
            assert (await client.start_job(job)).enabled
            assert not (await client.stop_job("close")).enabled

    run_async(program())


def test_a_wait_ends_in_time_and_can_be_cancelled(console: Console) -> None:
    job = make_job()

    async def program() -> None:
        async with AsyncClient(transport=console.transport) as client:
            run = await client.trigger(job.id, in_=60)
            with pytest.raises(RunNotEnded, match="still waiting after 0.3 s"):
                await run.wait(timeout=0.3)
            waiting = asyncio.create_task(run.wait())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await run.kill()).state == "killed"
            with pytest.raises(UnknownName, match="no job nope"):
                await client.job("nope")

    run_async(program())


def test_a_log_is_followed(console: Console) -> None:
    async def program() -> None:
        with FakeExecutor() as executor:
            made = make_run(make_job(addresses=executor.address), log={"executor_address": executor.address})
            executor.respond("log", LOG)
            call_back(made.id, 200)
            async with AsyncClient(transport=console.transport) as client:
                run = await client.run(made.id)
                assert [line async for line in run.follow()] == ["one", "two"]
                assert run.succeeded
                assert await run.log() == "one\ntwo"
                assert (await run.retry()).state == "waiting"

    run_async(program())


def test_a_long_log_is_followed_without_pauses(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor_client.client.async_client.FIRST_PAUSE_S", 3_600)

    async def program() -> None:
        with FakeExecutor() as executor:
            log = {"executor_address": executor.address, "handle_code": 200}
            made = make_run(make_job(addresses=executor.address), log=log)
            executor.respond("log", *long_log())
            async with AsyncClient(transport=console.transport) as client:
                run = await client.run(made.id)
                assert len([line async for line in run.follow()]) == LONG_LOG_STARTS[-1] - 1

    run_async(program())
