"""Host names: one lookup at a time, cached, and the address that accepts connections first."""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from app.executors import names
from app.executors.calls import Delivery, Peer
from app.executors.dispatch_client import DispatchClient
from app.executors.names import LOOKUPS_MAX, Names
from tests.support.executors import NETWORKS, TOKEN, in_loop, with_client
from tests.support.fake_executor import FakeExecutor

PORT = 9999


class Resolver:
    """Stub of the system's resolver: answers from a table, counts, and can block a name."""

    def __init__(self, **known: list[str]) -> None:
        self.known = known
        self.asked: list[str] = []
        self.hanging: set[str] = set()
        #: ends the hanging
        self.go = threading.Event()

    def __call__(self, host: str, _port: int) -> list[str]:
        self.asked.append(host)
        if host in self.hanging:
            self.go.wait(10)
        if host not in self.known:
            raise socket.gaierror(-2, "Name or service not known")
        return self.known[host]

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Use it in place of the system's resolver."""
        monkeypatch.setattr(names, "_resolve", self)


def test_hanging_names_are_looked_up_once_and_delay_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = [f"slow{number}" for number in range(LOOKUPS_MAX - 1)]
    resolver = Resolver(good=["127.0.0.1"], **{name: ["127.0.0.2"] for name in hanging})
    resolver.hanging.update(hanging)

    async def run() -> None:
        resolver.use(monkeypatch)
        found = Names(NETWORKS)
        waiting = [asyncio.ensure_future(found.find(name, PORT)) for name in hanging * 2]
        await asyncio.sleep(0.02)
        assert await found.find("good", PORT) == ["127.0.0.1"]
        waiting[0].cancel()
        resolver.go.set()
        assert [await lookup for lookup in waiting[1:]] == [["127.0.0.2"]] * (len(waiting) - 1)
        assert sorted(resolver.asked) == sorted([*hanging, "good"])
        found.close()

    in_loop(run())


def test_an_answer_is_cached_and_renewed_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "KNOWN_S", 0.1)
    resolver = Resolver(moves=["127.0.0.1"])

    async def run() -> None:
        resolver.use(monkeypatch)
        found = Names(NETWORKS)
        for _ in range(3):
            assert await found.find("moves", PORT) == ["127.0.0.1"]
        assert resolver.asked == ["moves"]
        resolver.known["moves"] = ["127.0.0.5"]
        await asyncio.sleep(0.12)
        assert await found.find("moves", PORT) == ["127.0.0.1"], "no call waits for the renewal"
        while await found.find("moves", PORT) == ["127.0.0.1"]:
            await asyncio.sleep(0.01)
        assert await found.find("moves", PORT) == ["127.0.0.5"]
        found.close()

    in_loop(run())


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("missing", "the host name missing does not resolve"),
        ("outside", "outside the networks"),
        ("mixed", ""),
    ],
)
def test_the_resolved_addresses_are_checked(monkeypatch: pytest.MonkeyPatch, host: str, reason: str) -> None:
    resolver = Resolver(outside=["8.8.8.8"], mixed=["8.8.8.8", "127.0.0.1"])

    async def run() -> list[str]:
        resolver.use(monkeypatch)
        found = Names(NETWORKS)
        with pytest.raises(OSError, match=reason) if reason else no_error():
            await found.find(host, PORT)
        return [] if reason else await found.find(host, PORT)

    assert in_loop(run()) == ([] if reason else ["127.0.0.1"])
    assert resolver.asked == [host], "a failure is cached briefly, too"


@contextmanager
def no_error() -> Iterator[None]:
    yield


@pytest.fixture
def black_hole() -> Iterator[Callable[[int], None]]:
    """Make 127.0.0.9 answer no connection at a port: its queue is full."""
    opened: list[socket.socket] = []

    def make(port: int) -> None:
        full = socket.socket()
        full.bind(("127.0.0.9", port))
        full.listen(0)
        opened.append(full)
        for _ in range(4):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.9", port))
            opened.append(waiting)

    yield make
    for lookup in opened:
        lookup.close()


def test_an_unresponsive_address_leaves_time_for_the_next_and_then_comes_last(
    executor: FakeExecutor, black_hole: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(executor.address.rstrip("/").rpartition(":")[2])
    black_hole(port)
    resolver = Resolver(two=["127.0.0.9", "127.0.0.1"])

    async def work(client: DispatchClient) -> list[int]:
        resolver.use(monkeypatch)
        outcomes = []
        for _ in range(2):
            outcomes.append(
                await client.call(Peer(f"http://two:{port}/", "demo", TOKEN), "run", b"{}", timeout_s=1.0)
            )
            for connection in list(client._open):
                connection.close()
            await asyncio.sleep(0.01)
        assert [outcome.delivery for outcome in outcomes] == [Delivery.ANSWERED] * 2
        return [outcome.took_ms for outcome in outcomes]

    first_ms, second_ms = with_client(work)
    assert first_ms >= 490, "half of the time went to the first address"
    assert second_ms < 490


def lack(*_: object, **__: object) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.EBUSY, "Device or resource busy"),  # with libnss-mdns
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),  # no socket for DNS
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
    ],
)
def test_a_name_that_this_host_has_no_file_to_look_up_is_not_unknown(
    error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    async def work(client: DispatchClient) -> list[Delivery]:
        monkeypatch.setattr(socket, "getaddrinfo", fail)
        monkeypatch.setattr(os, "open", lack)
        peer = Peer("http://some:9999/", "demo", TOKEN)
        return [(await client.call(peer, "run", b"{}", timeout_s=1.0)).delivery for _ in range(2)]

    assert with_client(work) == [Delivery.UNTRIED] * 2


def test_an_answer_stays_known_while_this_host_has_no_file_to_renew_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(names, "KNOWN_S", 0.0)

    async def run() -> None:
        Resolver(some=["127.0.0.1"]).use(monkeypatch)
        found = Names(NETWORKS)
        for _ in range(3):
            assert await found.find("some", PORT) == ["127.0.0.1"]
            await asyncio.gather(*found._lookups.values())
            monkeypatch.setattr(names, "_resolve", lack)
        monkeypatch.setattr(names, "STALE_S", 0.0)
        with pytest.raises(OSError, match="Too many open files"):
            await found.find("some", PORT)
        found.close()

    in_loop(run())


def test_a_name_is_not_resolved_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def work(client: DispatchClient) -> Delivery:
        with monkeypatch.context() as at_the_limit:
            at_the_limit.setattr(threading.Thread, "start", fail)
            outcome = await client.call(Peer("http://some:9999/", "demo", TOKEN), "run", b"{}", timeout_s=1.0)
        return outcome.delivery

    assert with_client(work) is Delivery.NO
