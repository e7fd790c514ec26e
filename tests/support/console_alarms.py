"""Helpers of the tests of console alarms, for all that need them."""

from dataclasses import replace
from typing import Any

from tests.support.console import Console
from tests.support.fake_executor import FakeExecutor


def titles(server: FakeExecutor) -> list[str]:
    return [request.json["title"] for request in server.requests]


def configure(console: Console, **changes: Any) -> None:
    console.app.config["XXL_JOB"] = replace(console.app.config["XXL_JOB"], **changes)
