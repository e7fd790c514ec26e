"""Helpers of the tests of interop, for all that need them."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.acceptance.console import Console
from tests.acceptance.programs import Program
from tests.interop.foreign import Foreign
from tests.support.eventually import eventually


@dataclass
class Pair:
    """Two executors of one kind and their group."""

    kind: Foreign
    console: Console
    group_id: int
    #: registered address -> program
    programs: dict[str, Program]
    #: registered address -> command that starts the program
    starters: dict[str, Callable[[], Program]]

    def start_again(self, address: str) -> None:
        """Start a killed executor again, for later tests."""
        self.programs[address] = self.starters[address]()
        port = urlsplit(address).port
        assert port is not None
        eventually(lambda: is_listening(port), 45, "the executor is back")

    def add_job(self, handler: str, **changes: Any) -> int:
        return self.console.add_job(self.group_id, executorHandler=handler, **changes)

    def run(self, handler: str, param: str = "", **changes: Any) -> dict[str, Any]:
        """Run a new job once manually and return its row when it has ended."""
        job_id = self.add_job(handler, **changes)
        self.console.trigger(job_id, param)
        return self.await_runs(job_id, 1)[0]

    def await_log(self, log_id: int, text: str) -> str:
        """Wait until the log of a run contains a text, and return it.

        Some executors report a result before they create the log file, and answer "not found" until then.
        """

        def found() -> str:
            if self.console.ask("/joblog/logDetailCat", logId=log_id, fromLineNum=1)["code"] != 200:
                return ""
            log = self.console.log_text(log_id)
            return log if text in log else ""

        return eventually(found, 20, f"{text!r} is in the log of run {log_id}")

    def await_runs(self, job_id: int, count: int) -> list[dict[str, Any]]:
        return self.console.await_runs(self.group_id, job_id, count, 45)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
