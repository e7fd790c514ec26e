"""Minimal executor: a bare asyncio protocol that accepts runs and calls back in batches.

``python bench/stub_executor.py --port 9998 --admin http://127.0.0.1:8080/xxl-job-admin --batch 50 --out
runs.jsonl``.

Registers, answers ``/run`` at once, reports results, ``--run-ms`` later, in batches of ``--batch`` (or after
20 ms), and on SIGUSR1 and SIGTERM writes one line per run: ``[log id, job id, received ms]``. With
``--log-lines`` each run has a log of so many lines; with ``--log-hangs`` a call of ``/log`` is never
answered. A run of the handler BIG never ends, and its log has BIG_LINES.
"""

import argparse
import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: results wait no longer than this for their batch to fill
LINGER_S = 0.02
#: connections for reporting results, as many as a group of executors would have
SENDERS = 16
#: handler whose run has a log of 1 GB, lines of 100 bytes each, and how many of them an answer has
BIG, BIG_LINES, BIG_PIECE = "big", 10_000_000, 2_600
LINE = "2026-11-30 09:00:00.000 INFO  bench.Handler line %012d of a log that the benchmark archives abcdefg\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=UTF-8\r\nContent-Length: %d\r\n\r\n"


def now_ms() -> float:
    return time.time() * 1000


class Stub:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.received: list[tuple[int, int, float]] = []
        self.results: asyncio.Queue[bytes] = asyncio.Queue()
        self.delivered = 0
        #: runs with the log of 1 GB
        self.big: set[int] = set()

    def write_runs(self) -> None:
        """Write what was received; the file appears when it is complete."""
        out = Path(self.arguments.out)
        with out.with_suffix(".part").open("w", encoding="utf-8") as stream:
            for run in self.received:
                stream.write(json.dumps(run) + "\n")
        out.with_suffix(".part").rename(out)

    def run(self, body: bytes) -> None:
        fields = json.loads(body)
        self.received.append((fields["logId"], fields["jobId"], now_ms()))
        if fields["executorHandler"] == BIG:
            self.big.add(fields["logId"])
            return
        ids = (fields["logId"], fields["logDateTime"])
        result = b'{"logId":%d,"logDateTim":%d,"handleCode":200,"handleMsg":null}' % ids
        if run_ms := self.arguments.run_ms:
            asyncio.get_running_loop().call_later(run_ms / 1000, self.results.put_nowait, result)
        else:
            self.results.put_nowait(result)

    def log(self, body: bytes) -> bytes | None:
        """Return the answer with lines of a log; None: there is none."""
        if self.arguments.log_hangs:
            return None
        fields = json.loads(body)
        first = fields["fromLineNum"]
        count = BIG_LINES if fields["logId"] in self.big else self.arguments.log_lines
        last = min(count, first + BIG_PIECE - 1)
        text = "".join(LINE % number for number in range(first, last + 1))
        piece = {"fromLineNum": first, "toLineNum": last, "logContent": text, "isEnd": last >= count}
        answer = json.dumps({"code": 200, "msg": None, "content": piece}).encode()
        return HEAD % len(answer) + answer

    async def post(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, action: str, body: bytes
    ) -> dict[str, Any]:
        admin = urlsplit(self.arguments.admin)
        head = (
            f"POST {admin.path}/api/{action} HTTP/1.1\r\nHost: {admin.netloc}\r\nContent-Type:"
            " application/json;charset=UTF-8\r\n"
            f"XXL-JOB-ACCESS-TOKEN: {self.arguments.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in answer.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        reply: dict[str, Any] = json.loads(await reader.readexactly(length))
        return reply

    async def send_results(self) -> None:
        """Report results until cancelled; a batch is sent again until it is acknowledged."""
        admin = urlsplit(self.arguments.admin)
        batch: list[bytes] = []
        while True:
            try:
                reader, writer = await asyncio.open_connection(admin.hostname, admin.port)
                while True:
                    if not batch:
                        batch = await self.next_batch()
                    reply = await self.post(reader, writer, "callback", b"[" + b",".join(batch) + b"]")
                    if reply["code"] == 200:
                        self.delivered += len(batch)
                        batch = []
                    else:
                        await asyncio.sleep(0.2)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                await asyncio.sleep(0.1)

    async def next_batch(self) -> list[bytes]:
        batch = [await self.results.get()]
        until = asyncio.get_running_loop().time() + LINGER_S
        while len(batch) < self.arguments.batch:
            wait_s = until - asyncio.get_running_loop().time()
            if wait_s <= 0 and self.results.empty():
                break
            try:
                batch.append(await asyncio.wait_for(self.results.get(), max(wait_s, 0.001)))
            except TimeoutError:
                break
        return batch

    async def register(self) -> None:
        admin = urlsplit(self.arguments.admin)
        body = {
            "registryGroup": "EXECUTOR",
            "registryKey": self.arguments.appname,
            "registryValue": f"http://127.0.0.1:{self.arguments.port}/",
        }
        while True:
            try:
                reader, writer = await asyncio.open_connection(admin.hostname, admin.port)
                await self.post(reader, writer, "registry", json.dumps(body).encode())
                writer.close()
                await asyncio.sleep(10)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                await asyncio.sleep(0.2)


class Connection(asyncio.Protocol):
    """Just enough HTTP/1.1 for the requests of dispatchers."""

    YES = (
        b'HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=UTF-8\r\nContent-Length: 12\r\n\r\n{"code":200}'
    )

    def __init__(self, stub: Stub) -> None:
        self.stub = stub
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            start = head.lower().find(b"content-length:")
            length = int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
            if head.startswith(b"POST /run"):
                self.stub.run(body)
            answer = self.stub.log(body) if head.startswith(b"POST /log") else self.YES
            if answer is not None:
                self.transport.write(answer)


async def main(arguments: argparse.Namespace) -> None:
    stub = Stub(arguments)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, stub.write_runs)
    server = await loop.create_server(lambda: Connection(stub), "127.0.0.1", arguments.port)
    tasks = [
        asyncio.create_task(stub.register()),
        *(asyncio.create_task(stub.send_results()) for _ in range(SENDERS)),
    ]
    await stop.wait()
    server.close()
    for task in tasks:
        task.cancel()
    stub.write_runs()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--admin", required=True)
    parser.add_argument("--appname", default="bench")
    parser.add_argument("--token", required=True)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--run-ms", type=int, default=0, help="how long a run takes")
    parser.add_argument("--log-lines", type=int, default=0, help="lines of the log of each run")
    parser.add_argument("--log-hangs", action="store_true", help="never answer /log")
    parser.add_argument("--out", required=True)
    asyncio.run(main(parser.parse_args()))
