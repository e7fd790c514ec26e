"""Users, jobs and a runner for tests of background tasks."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from app.services.tasks.runner import Piece, TaskRunner
from app.settings.config import Config
from tests.support.tasks import Clock
from workers.monitor import PIECES


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_runner(config: Config, clock: Clock) -> Iterator[Callable[..., TaskRunner]]:
    """Return runners of several nodes on one clock."""
    made = list[TaskRunner]()

    def make(node: str = "one", pieces: Mapping[str, Piece] = PIECES) -> TaskRunner:
        made.append(TaskRunner(config, node=node, clock=clock, pieces=pieces))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.tasks.runner.IDLE_S", 0)
    monkeypatch.setattr("app.services.tasks.runner.PAUSE_S", 0)
