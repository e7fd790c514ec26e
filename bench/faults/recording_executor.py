"""An executor that records events and otherwise behaves, and forgets, like the Java original's.

``python bench/faults/recording_executor.py --port 9997 --admin http://127.0.0.1:8080/xxl-job-admin --journal
runs.jsonl``.

One queue per job; a log id is known only while it waits there ("repeate trigger job"); a log exists from the
start of a run; results are sent again until acknowledged; kill -9 loses everything but the logs. The journal
has one JSON line per event, written with O_APPEND: ``recv, accept, start, finish, acked`` with log id, job,
clock and boot. Only the checker reads it.

The handler's name is its behaviour: ``ok``, ``fail``, ``sleep`` (seconds in the parameter), ``never`` (no
result), ``refuse`` (no acceptance).
"""

import argparse
import asyncio
import contextlib
import json
import os
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: results wait no longer than this for a larger batch
LINGER_S = 0.02
BATCH = 50
#: an answer of the admin that takes longer is ignored
ADMIN_TIMEOUT_S = 5.0
BEAT_S = 10.0
#: pause before something is sent again
AGAIN_S = 0.2
HANDLERS = ("ok", "fail", "sleep", "never", "refuse")
SUCCESS, FAIL, TIMED_OUT = 200, 500, 502


@dataclass
class JobQueue:
    """The worker of one job."""

    waiting: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    queued: set[int] = field(default_factory=set)
    running: asyncio.Task[tuple[int, str]] | None = None
    worker: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self.running is not None or bool(self.queued)


class Executor:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.boot = uuid.uuid4().hex[:8]
        self.journal = os.open(arguments.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.jobs: dict[int, JobQueue] = {}
        self.logs = Path(f"{arguments.journal}.logs")
        self.logs.mkdir(exist_ok=True)
        self.results: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def note(self, event: str, log_id: int, job_id: int, **more: Any) -> None:
        """Append one line to the journal."""
        clocks = {"wall_ms": time.time_ns() // 1_000_000, "mono_ms": time.monotonic_ns() // 1_000_000}
        where = {"boot": self.boot, "port": self.arguments.port}
        line = {"event": event, "log_id": log_id, "job_id": job_id, **clocks, **where, **more}
        os.write(self.journal, json.dumps(line).encode() + b"\n")

    # --- requests of the admin ---

    def run(self, call: dict[str, Any]) -> dict[str, Any]:
        log_id, job_id, handler = call["logId"], call["jobId"], call["executorHandler"]
        payload = {
            "param": call["executorParams"],
            "shard": f"{call['broadcastIndex']}/{call['broadcastTotal']}",
        }
        self.note("recv", log_id, job_id, instant=call["logDateTime"], **payload)
        if handler not in HANDLERS or handler == "refuse":
            return {"code": FAIL, "msg": f"job handler [{handler}] not found."}
        job = self.jobs.setdefault(job_id, JobQueue())
        strategy = call["executorBlockStrategy"]
        if strategy == "DISCARD_LATER" and job.is_busy:
            return {"code": FAIL, "msg": "block strategy effect：Discard Later"}
        if strategy == "COVER_EARLY":
            self.drop(job, "block strategy effect：Cover Early")
        if log_id in job.queued:
            return {"code": FAIL, "msg": f"repeate trigger job, logId:{log_id}"}
        job.queued.add(log_id)
        job.waiting.put_nowait(call)
        if job.worker is None:
            job.worker = asyncio.create_task(self.work(job))
        self.note("accept", log_id, job_id)
        return {"code": SUCCESS}

    def kill(self, call: dict[str, Any]) -> dict[str, Any]:
        job = self.jobs.get(call["jobId"])
        if job is None or not job.is_busy:
            return {"code": SUCCESS, "msg": "job thread already killed."}
        self.drop(job, "scheduling center kill job.")
        return {"code": SUCCESS}

    def drop(self, job: JobQueue, reason: str) -> None:
        """Fail a job's run and all runs in its queue."""
        while not job.waiting.empty():
            call = job.waiting.get_nowait()
            job.queued.discard(call["logId"])
            self.finish(call, FAIL, f"{reason} [job not executed, in the job queue, killed.]")
        if job.running is not None:
            job.running.cancel(f"{reason} [job running, killed]")

    def idle_beat(self, call: dict[str, Any]) -> dict[str, Any]:
        job = self.jobs.get(call["jobId"])
        if job is not None and job.is_busy:
            return {"code": FAIL, "msg": "job thread is running or has trigger queue."}
        return {"code": SUCCESS}

    def log(self, call: dict[str, Any]) -> dict[str, Any]:
        first, path = call["fromLineNum"], self.logs / str(call["logId"])
        if not path.exists():
            missing = "readLog fail, logFile not exists"
            return {
                "code": SUCCESS,
                "content": {"fromLineNum": first, "toLineNum": 0, "logContent": missing, "isEnd": True},
            }
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "".join(f"{line}\n" for line in lines[first - 1 :])
        return {
            "code": SUCCESS,
            "content": {"fromLineNum": first, "toLineNum": len(lines), "logContent": text, "isEnd": False},
        }

    def write_log(self, call: dict[str, Any], line: str) -> None:
        with (self.logs / str(call["logId"])).open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    def answer(self, path: str, body: bytes) -> dict[str, Any]:
        actions = {"/run": self.run, "/kill": self.kill, "/idleBeat": self.idle_beat, "/log": self.log}
        if path == "/beat":
            return {"code": SUCCESS}
        if path not in actions:
            return {"code": FAIL, "msg": f"invalid request, uri-mapping({path}) not found."}
        return actions[path](json.loads(body))

    # --- running ---

    async def work(self, job: JobQueue) -> None:
        """Run the queued runs of one job, one after the other."""
        while True:
            call = await job.waiting.get()
            job.queued.discard(call["logId"])
            self.write_log(call, f"job execute start, param {call['executorParams']}")
            self.note("start", call["logId"], call["jobId"])
            job.running = asyncio.create_task(self.handle(call))
            try:
                code, text = await job.running
            except asyncio.CancelledError as exc:
                code, text = FAIL, str(exc)
            job.running = None
            self.write_log(call, f"job execute end, code {code}")
            self.finish(call, code, text)

    async def handle(self, call: dict[str, Any]) -> tuple[int, str]:
        handler, param = call["executorHandler"], call["executorParams"]
        if handler in ("sleep", "never"):
            limit_s = call["executorTimeout"] or None
            try:
                await asyncio.wait_for(asyncio.sleep(float(param or 1)), limit_s)
            except TimeoutError:
                return TIMED_OUT, "job execute timeout "
        return (FAIL, "told to fail") if handler == "fail" else (SUCCESS, f"done {param}")

    def finish(self, call: dict[str, Any], code: int, text: str) -> None:
        self.note("finish", call["logId"], call["jobId"], code=code)
        if call["executorHandler"] == "never" and code == SUCCESS:
            return
        result = {
            "logId": call["logId"],
            "logDateTim": call["logDateTime"],
            "handleCode": code,
            "handleMsg": text,
        }
        self.results.put_nowait(result | {"jobId": call["jobId"]})

    # --- requests to the admin ---

    async def send_results(self) -> None:
        """Send results; a batch is sent again until it is acknowledged."""
        while True:
            batch = [await self.results.get()]
            await asyncio.sleep(LINGER_S)
            while len(batch) < BATCH and not self.results.empty():
                batch.append(self.results.get_nowait())
            while not await self.call_admin(
                "callback", [{k: v for k, v in result.items() if k != "jobId"} for result in batch]
            ):
                await asyncio.sleep(AGAIN_S)
            for result in batch:
                self.note("acked", result["logId"], result["jobId"])

    async def register(self) -> None:
        address = self.arguments.address or f"http://127.0.0.1:{self.arguments.port}/"
        body = {"registryGroup": "EXECUTOR", "registryKey": self.arguments.appname, "registryValue": address}
        while True:
            accepted = await self.call_admin("registry", body)
            await asyncio.sleep(BEAT_S if accepted else AGAIN_S)

    async def call_admin(self, action: str, body: Any) -> bool:
        """Post to the admin on a new connection; True if the code is 200."""
        try:
            async with asyncio.timeout(ADMIN_TIMEOUT_S):
                return bool((await self._post(action, json.dumps(body).encode()))["code"] == SUCCESS)
        except (OSError, ValueError, KeyError, asyncio.IncompleteReadError, TimeoutError):
            return False

    async def _post(self, action: str, body: bytes) -> dict[str, Any]:
        admin = urlsplit(self.arguments.admin)
        reader, writer = await asyncio.open_connection(admin.hostname, admin.port)
        try:
            head = (
                f"POST {admin.path}/api/{action} HTTP/1.1\r\nHost: {admin.netloc}\r\nContent-Type:"
                " application/json;charset=UTF-8\r\n"
            )
            head += (
                f"XXL-JOB-ACCESS-TOKEN: {self.arguments.token}\r\nContent-Length: {len(body)}\r\n"
                "Connection: close\r\n\r\n"
            )
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            reply: dict[str, Any] = json.loads(await reader.readexactly(content_length(answer)))
            return reply
        finally:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(content_length(head))
                answer = json.dumps(self.answer(head.split(b" ", 2)[1].decode(), body)).encode()
                if self.arguments.slow_s:
                    await asyncio.sleep(self.arguments.slow_s)
                kind = b"HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=UTF-8\r\nContent-Length: "
                writer.write(kind + b"%d\r\n\r\n" % len(answer) + answer)
                await writer.drain()
        writer.close()


def content_length(head: bytes) -> int:
    lines = [line.split(b":", 1) for line in head.split(b"\r\n")]
    return next((int(parts[1]) for parts in lines if parts[0].lower() == b"content-length"), 0)


async def main(arguments: argparse.Namespace) -> None:
    executor = Executor(arguments)
    server = await asyncio.start_server(executor.serve, "127.0.0.1", arguments.port)
    async with server, asyncio.TaskGroup() as tasks:
        tasks.create_task(executor.register())
        tasks.create_task(executor.send_results())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--admin", required=True)
    parser.add_argument("--appname", default="recorder")
    parser.add_argument(
        "--address", default="", help="what to register instead of the port, for a proxy in between"
    )
    parser.add_argument("--token", default=os.environ.get("XXL_JOB_ACCESS_TOKEN", ""))
    parser.add_argument("--journal", required=True)
    parser.add_argument("--slow-s", type=float, default=0.0, help="answer everything so much later")
    asyncio.run(main(parser.parse_args()))
