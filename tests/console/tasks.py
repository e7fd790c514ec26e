"""Background tasks of a console under test: a monitor that does them when the test says so."""

from unittest.mock import patch

from werkzeug.test import TestResponse

from app.clock import now_ms
from app.console.web.current import settings
from app.services.tasks import runner
from tests.console.pages import path_after
from tests.support.console import Console
from workers.monitor import PIECES


def run_tasks(console: Console) -> None:
    """Do all pieces of all tasks there are."""
    with console.app.app_context():
        working = runner.TaskRunner(settings(), node="monitor", pieces=PIECES)
    with patch.object(runner, "IDLE_S", 0), patch.object(runner, "PAUSE_S", 0):
        working.tick(now_ms())
    working.close()


def result_of(console: Console, submitted: TestResponse) -> TestResponse:
    """Do the task that a form has submitted and return the page of its result."""
    path = path_after(submitted)
    assert path.startswith("/tasks/"), path
    run_tasks(console)
    return console.get(path)
