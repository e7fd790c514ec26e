"""Pieces of background tasks: table of the functions that do the next piece, by kind of task.

Modules of the work are imported when a task needs them: workers without such a task do without.
"""

from collections.abc import Mapping

from app.domain.tasks import TaskKind
from app.services.tasks.runner import Piece
from app.services.tasks.task_step import Turn


def _change_next(turn: Turn) -> None:
    from app.services.jobs import bulk

    bulk.change_next(turn)


def _clear_next(turn: Turn) -> None:
    from app.services.runs import clearing

    clearing.clear_next(turn)


def _import_task(turn: Turn) -> None:
    from app.services.jobs.transfer import importing

    importing.import_task(turn)


PIECES: Mapping[str, Piece] = {
    TaskKind.BULK.value: _change_next,
    TaskKind.CLEAR_LOGS.value: _clear_next,
    TaskKind.IMPORT.value: _import_task,
}
