"""Background tasks: their kinds, states, and the lines of their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class TaskKind(StrEnum):
    """What a task does (`xxl_job_task.kind`)."""

    BULK = "bulk"
    CLEAR_LOGS = "clear_logs"
    IMPORT = "import"


class TaskState(StrEnum):
    """State of a task (`xxl_job_task.state`)."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


#: kinds whose parameters are long and are emptied when the task ends
EMPTIED = (TaskKind.IMPORT,)
#: states a task never leaves
ENDED = (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED)
#: states of which the same form begins a new task
UNDONE = (TaskState.FAILED, TaskState.CANCELLED)


@dataclass(frozen=True, slots=True)
class ResultLine:
    """Result for one object of a task, such as one job."""

    #: position among the objects of the task, from 0; unique in a task
    number: int
    outcome: str
    object_id: int = 0
    name: str = ""
    #: packed, see ``app.domain.packed_text``
    detail: object = None


@dataclass(frozen=True, slots=True)
class Step:
    """Progress made by one piece of a task; stored in the transaction of the piece."""

    #: added to the number of objects done
    advance: int = 0
    #: whether anything was done, also where ``advance`` is 0
    is_progress: bool = True
    lines: Sequence[ResultLine] = ()
    is_done: bool = False
    #: reason for the failure; the task ends as FAILED
    error: str = ""
