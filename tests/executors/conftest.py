"""Fake executors, and clients to call them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from ipaddress import ip_network
from typing import Any, TypeVar

import pytest
from uvloop import new_event_loop

from app.executors.calls import Peer
from app.executors.dispatch_client import DispatchClient
from tests.fake_executor import FakeExecutor

T = TypeVar("T")
NETWORKS = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
TOKEN = "a-token-of-some-length"


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        yield running


@pytest.fixture
def peer(executor: FakeExecutor) -> Peer:
    return Peer(executor.address, "demo-executor", TOKEN)


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop, as dispatch does."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


def with_client(work: Callable[[DispatchClient], Awaitable[T]], networks: tuple[object, ...] = NETWORKS) -> T:
    """Call a function with a dispatch client in an event loop of its own."""

    async def run() -> T:
        client = DispatchClient(networks)  # type: ignore[arg-type]
        try:
            return await work(client)
        finally:
            await client.close()

    return in_loop(run())
