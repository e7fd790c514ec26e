"""Helpers of the tests of executors, for all that need them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from ipaddress import ip_network
from typing import Any, TypeVar

from uvloop import new_event_loop

from app.executors.dispatch_client import DispatchClient

T = TypeVar("T")


NETWORKS = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


TOKEN = "a-token-of-some-length"


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
