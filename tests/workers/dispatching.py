"""Dispatcher tests: a dispatcher on the test database, its executors and fires."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from app.clock import now_ms
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.settings.config import Config
from tests.pipeline.steps import LONG_TIMEOUT_S, LOOPBACK, TOKEN
from tests.support.eventually import eventually
from tests.support.factories import all_rows, make_fire
from tests.support.fake_executor import FakeExecutor
from workers.dispatch.dispatcher import Dispatcher


@contextmanager
def dispatching(
    config: Config, node: str = "one", *, may_fire: Callable[[], bool] = lambda: True, **changes: Any
) -> Iterator[Dispatcher]:
    settings = {"trigger_timeout_s": LONG_TIMEOUT_S, "executor_networks": LOOPBACK, **changes}
    dispatcher = Dispatcher(replace(config, **settings), node=node, tokens=(TOKEN,), may_fire=may_fire)
    dispatcher.start()
    try:
        yield dispatcher
    finally:
        dispatcher.stop()


@contextmanager
def executors(count: int) -> Iterator[list[FakeExecutor]]:
    """Start executors, in the order of their addresses in a group's list."""
    with ExitStack() as stack:
        yield [stack.enter_context(FakeExecutor()) for _ in range(count)]


def group_of(*members: FakeExecutor) -> str:
    return ",".join(member.address for member in members)


def fires_of(job: Job, count: int = 1, **more: Any) -> list[Fire]:
    """Commit fires that are due now, in the ring of node one."""
    return [make_fire(job, due_time=now_ms(), **{"owner": "one", **more}) for _ in range(count)]


def states() -> dict[str, int]:
    found = [fire.state for fire in all_rows(Fire)]
    return {state: found.count(state) for state in set(found)}


def await_states(expected: dict[str, int]) -> None:
    """Wait until each state has this number of fires, and no other state has any."""

    def differs() -> str:
        traces = [
            (log.id, log.trigger_code, log.trigger_msg) for log in all_rows(JobLog) if log.trigger_code != 200
        ]
        return f"{expected} is wanted, but there is {states()}; of these runs {traces}"

    eventually(lambda: states() == expected, message=differs)
