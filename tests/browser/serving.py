"""Console and stub executor for the browser, each in a thread."""

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from waitress.server import create_server

from app.clock import Millis, now_ms
from app.database.engine import session_scope, unbind_engine
from app.factory import create_app
from app.models.fire import Fire
from app.models.log import JobLog
from app.services.tasks.runner import TaskRunner
from app.settings.config import Config
from app.store.nodes import nodes
from tests.browser.seed import NODE, ZONE, Seeded, seed
from tests.support.databases import migrate
from tests.support.plan import BROWSERS
from workers.loop import Loop
from workers.monitor import PIECES

#: how the browser is started: the system's, with no requests but to the console
LAUNCH: dict[str, Any] = {
    "executable_path": next(filter(None, map(shutil.which, BROWSERS)), BROWSERS[0]),
    "args": [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        # no page lives long enough for optimized code to pay
        "--js-flags=--no-opt --no-maglev",
    ],
}
#: address of the stub executor
NETWORKS = (ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8"))
#: period in which a scan is recorded
MARKED_EVERY_MS: Millis = 2_500
#: lines of every log at the stub executor
LOG_LINES = [
    "2026-11-20 08:00:00 [demo.py:12] INFO begin, parameter region=eu",
    "2026-11-20 08:00:01 [demo.py:20] WARNING the ledger is slow",
    "2026-11-20 08:00:02 [demo.py:31] ERROR order 4711: <script>alert(1)</script> is no amount",
    "2026-11-20 08:00:02 [demo.py:35] \x1b[31mred\x1b[0m \x1b[1;32mgreen\x1b[0m \x1b[93myellow\x1b[m "
    "\x1b[38;5;4mblue\x1b[0m \x1b]0;title\x07\x1b[2Kend",
    *(
        f"2026-11-20 08:00:{3 + number // 12:02d} [demo.py:40] INFO order {5000 + number} closed"
        for number in range(120)
    ),
]


@dataclass(frozen=True, slots=True)
class Console:
    """A running console; ``url`` has no trailing slash."""

    url: str
    seeded: Seeded


class StubExecutor(BaseHTTPRequestHandler):
    """Answers ``/log`` with the lines above and everything else with success."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        content: object = None
        if self.path.endswith("/log"):
            first = int(body["fromLineNum"])
            lines = LOG_LINES[first - 1 :]
            text = "".join(f"{line}\n" for line in lines)
            content = {
                "fromLineNum": first,
                "toLineNum": first + len(lines) - 1,
                "logContent": text,
                "isEnd": False,
            }
        answer = json.dumps({"code": 200, "msg": None, "content": content}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def stub_executor() -> Iterator[str]:
    """Run the stub executor; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), StubExecutor)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="stub-executor")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()


@contextmanager
def serving(home: Path, *, language: str = "en", zone: str = ZONE) -> Iterator[Console]:
    """Run a console on a new SQLite file with sample data."""
    config = Config(
        home=home,
        database_url=f"sqlite:///{home / 'xxl_job.db'}",
        time_zone=zone,
        language=language,
        executor_networks=NETWORKS,
    )
    home.mkdir(parents=True, exist_ok=True)
    migrate(config.database_url)
    with stub_executor() as executor:
        app = create_app(config)
        with app.app_context(), session_scope() as session:
            seeded = seed(
                session,
                now_ms=now_ms(),
                language="zh_CN" if language.startswith("zh") else "en",
                executor=executor,
            )
        server = create_server(app, host="127.0.0.1", port=0, threads=8, clear_untrusted_proxy_headers=True)
        thread = threading.Thread(target=server.run, name="console")
        thread.start()
        try:
            with task_runner(config), scanner():
                yield Console(f"http://127.0.0.1:{server.effective_port}{config.context_path}", seeded)
        finally:
            server.close()
            thread.join(5)
            unbind_engine()


@contextmanager
def task_runner(config: Config) -> Iterator[None]:
    """Do background tasks, as a monitor would."""
    runner = TaskRunner(config, node="monitor", pieces=PIECES)
    loop = Loop("tasks", runner.tick)
    loop.start()
    try:
        yield
    finally:
        runner.request_stop()
        loop.stop()
        runner.close()


@contextmanager
def scanner() -> Iterator[None]:
    """Record scans, as a scheduler would."""

    def tick(at_ms: Millis) -> Millis:
        nodes.mark_scanned(NODE, now_ms=at_ms)
        return MARKED_EVERY_MS

    loop = Loop("scan", tick)
    loop.start()
    try:
        yield
    finally:
        loop.stop()


@contextmanager
def fake_worker(console: Console) -> Iterator[None]:
    """Stand in for the workers: every manual fire becomes a finished run."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.1):
            with session_scope() as session:
                for fire in session.query(Fire).filter_by(trigger_type="MANUAL", state="PENDING"):
                    log = session.get(JobLog, console.seeded.log_id)
                    assert log is not None
                    at_ms = now_ms()
                    made = JobLog(
                        job_group=log.job_group,
                        job_id=fire.job_id,
                        executor_address=log.executor_address,
                        trigger_type="MANUAL",
                        trigger_key=int(fire.fire_key.partition("-")[2][:15], 16),
                    )
                    made.trigger_time, made.trigger_code, made.handle_time, made.handle_code = (
                        at_ms,
                        200,
                        at_ms,
                        200,
                    )
                    made.executor_param = fire.executor_param
                    session.add(made)
                    session.delete(fire)

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5)
