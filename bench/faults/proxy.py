"""TCP proxies: one disturbs single HTTP requests, the other delays every byte.

``Proxy`` parses requests just enough to choose a fault for each: ``delay`` (forwarded late), ``swallow
reply`` (forwarded, never answered), ``reset before`` (never forwarded), ``reset after`` (forwarded and
answered, but the caller gets a reset), ``blackhole`` (neither forwarded nor answered), ``cut reply`` (half of
it). The caller cannot distinguish the last five, on purpose. ``DelayedLink`` parses nothing: it adds a
round-trip time to any protocol, such as a database's, or falls silent on the connections that are open.
"""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass, field

FAULTS = ("delay", "swallow reply", "reset before", "reset after", "blackhole", "cut reply")
#: longest delay of a request; shorter than the fence before an uncertain sender sends again
DELAY_MAX_S = 3.0
#: how long a caller waits without an answer before the connection is closed
SILENCE_S = 8.0


@dataclass
class LoopServer:
    """TCP server on an event loop in its own thread."""

    port: int
    target: int

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        #: streams keep only a weak reference to their task
        self._tasks: set[asyncio.Task[object] | None] = set()
        self._thread = threading.Thread(target=self._run, name=f"proxy-{self.port}", daemon=True)

    def start(self) -> None:
        """Start; return when it listens."""
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        self._ready.set()
        self._loop.run_forever()
        server.close()
        while left := asyncio.all_tasks(self._loop):
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        raise NotImplementedError


@dataclass
class DelayedLink(LoopServer):
    """Proxy that forwards everything, half of ``rtt_ms`` later in each direction."""

    rtt_ms: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def fall_silent(self) -> None:
        """Leave the callers of all open connections without answer or end, as a server that was replaced."""
        self._loop.call_soon_threadsafe(self._disconnect)

    def _disconnect(self) -> None:
        for forth in self._open:
            forth.close()
        self._open.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self.target)
            self._open.add(forth)
            with contextlib.suppress(OSError):  # one side has closed
                await asyncio.gather(self._pass_on(reader, forth), self._pass_on(back, writer, forth))
            await self._stay_if_silent(forth)
            self._open.discard(forth)
        except (OSError, asyncio.CancelledError):
            pass  # one side has closed, or the proxy stops
        finally:
            self._tasks.discard(asyncio.current_task())
            writer.close()

    async def _stay_if_silent(self, server: asyncio.StreamWriter) -> None:
        """Keep the caller's connection open until the proxy stops, if the link fell silent on it."""
        if server not in self._open:
            await asyncio.Event().wait()

    async def _pass_on(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        server: asyncio.StreamWriter | None = None,
    ) -> None:
        """Forward bytes in order, each when it is due; also forward the end, unless the link fell silent."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        receiving = asyncio.create_task(self._receive(source, under_way))
        try:
            while True:
                due, piece = await under_way.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                if not piece:
                    if server is not None:
                        await self._stay_if_silent(server)
                    return
                sink.write(piece)
                await sink.drain()
        finally:
            receiving.cancel()
            sink.close()

    async def _receive(
        self, source: asyncio.StreamReader, under_way: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        piece = b"-"
        while piece:
            try:
                piece = await source.read(65_536)
            except OSError:
                piece = b""
            under_way.put_nowait((self._loop.time() + self.rtt_ms / 2000, piece))


@dataclass
class Proxy(LoopServer):
    """Proxy in front of a port; disturbs a ``share`` of the requests."""

    seed: int = 0
    share: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._dice = random.Random(self.seed)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one caller, with one connection to the other side for as long as the caller's."""
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._tasks.add(asyncio.current_task())
        try:
            while True:
                request = await _message(reader)
                fault = self._dice.choice(FAULTS) if self._dice.random() < self.share else ""
                if fault:
                    self.counts[fault] += 1
                if fault in ("reset before", "blackhole"):
                    await self._leave(writer, reset=fault == "reset before")
                    return
                if fault == "delay":
                    await asyncio.sleep(self._dice.uniform(0.2, DELAY_MAX_S))
                upstream = upstream or await asyncio.open_connection("127.0.0.1", self.target)
                upstream[1].write(request)
                reply = await _message(upstream[0])
                if fault in ("swallow reply", "reset after"):
                    await self._leave(writer, reset=fault == "reset after")
                    return
                writer.write(reply[: len(reply) // 2] if fault == "cut reply" else reply)
                await writer.drain()
                if fault == "cut reply":
                    return
        except (OSError, asyncio.IncompleteReadError, ValueError, asyncio.CancelledError):
            pass  # closed, not HTTP, or the proxy stops
        finally:
            self._tasks.discard(asyncio.current_task())
            for stream in (writer, upstream[1] if upstream else None):
                if stream is not None:
                    stream.close()

    async def _leave(self, writer: asyncio.StreamWriter, *, reset: bool) -> None:
        """Close with a reset, or after a long silence."""
        if not reset:
            await asyncio.sleep(SILENCE_S)
            return
        raw = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Read one whole request or reply: head and body of the announced length."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if fields.get(b"transfer-encoding", b"").strip() == b"chunked":
        return head + await _chunks(reader)
    return head + await reader.readexactly(int(fields.get(b"content-length", 0)))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = await reader.readuntil(b"\r\n")
        chunk = await reader.readexactly(int(size.split(b";")[0], 16) + 2)
        body += size + chunk
        if chunk == b"\r\n":
            return body
