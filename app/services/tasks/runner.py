"""Task runner: claims background tasks and works on them piece by piece; a tick of the monitor.

Each piece commits its work and its progress in one transaction, so a killed runner loses nothing and repeats
nothing: the next owner goes on after the last commit. The tasks a node holds take turns of about a second, a
longer piece such as an import included whole. No user has more than two of them, so that a short task of
another user gets a turn beside long ones; it waits only while several users' long tasks fill all places.
"""

import logging
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from sqlalchemy.exc import DBAPIError

from app.clock import Clock, Millis, now_ms
from app.database.engine import read_scope, transact
from app.domain.tasks import TaskState
from app.domain.text.texts import N_
from app.errors import XxlJobError
from app.models.task import Task
from app.runtime.wake_up import TASKS, WakeSocket
from app.services.tasks.task_step import DATABASE_REFUSED, LEASE_MS, TaskLost, TaskRefused, Turn, is_of_data
from app.settings.config import Config
from app.store.nodes import tasks

logger = logging.getLogger(__name__)

Piece = Callable[[Turn], None]

#: tasks a node works on at the same time
HELD_MAX = 4
#: most of them that belong to one user
HELD_OF_USER = 2
#: longest turn of one task while others wait
TURN_S = 1.0
#: pause between two pieces: other writers go first
PAUSE_S = 0.005
#: a piece whose data the database refuses so often in a row ends its task
ATTEMPTS = 3
#: a task claimed more often since its last progress ends the processes that work on it
CLAIMS_MAX = 5
#: longest wait for a wake-up signal; tasks from other hosts are found after it
IDLE_S = 1.0
UNEXPECTED = N_("Unexpected error; see the log of the workers")
WORKERS_ENDED = N_("The workers ended several times while doing this task")


class TaskRunner:
    """Works on the tasks this node holds; ``tick`` belongs to one thread."""

    def __init__(
        self, config: Config, *, node: str, pieces: Mapping[str, Piece], clock: Clock = now_ms
    ) -> None:
        self._node = node
        self._clock = clock
        self._pieces = pieces
        self._socket = WakeSocket(config.home, node, TASKS)
        self._stop = threading.Event()
        self._is_started = False
        #: task id -> the task as of its last commit
        self._held: dict[int, Task] = {}
        #: task id -> failures of its next piece
        self._failures: Counter[int] = Counter()

    def request_stop(self) -> None:
        """Stop after the piece in progress."""
        self._stop.set()

    def close(self) -> None:
        """Close the socket, after the last tick."""
        self._socket.close()

    def tick(self, _at_ms: Millis) -> Millis:
        """Give each held task a turn, claim free ones; without any, wait for a wake-up signal. Returns 0.

        A claimed task gets its turn before the next is claimed: if it ends the process, it takes none along.
        An error in the turn of one task is raised after the turns of the others.
        """
        descriptor = self._start()
        errors, task_ids, is_idle = list[Exception](), list[int](), True
        for task_id in list(self._held):
            self._try_turn(task_id, errors)
        for _place in range(HELD_MAX - len(self._held)):
            row = self._claim(task_ids)
            if row is None:
                break
            is_idle = False
            self._try_turn(row, errors)
        if errors:
            raise errors[0]
        if not self._held and is_idle and not self._stop.is_set():
            select.select([descriptor] if descriptor is not None else [], [], [], IDLE_S)
            self._socket.drain()
        return 0

    def _start(self) -> int | None:
        """Listen, and take back what this node held when it was killed; called before the first claim."""
        if not self._is_started:
            transact(lambda session: tasks.end_leases(session, self._node))
            self._is_started = True
            return self._socket.open()
        return self._socket.descriptor

    def _claim(self, task_ids: list[int]) -> int | None:
        """Claim the oldest task of a kind known here whose user has a place left; None: there is none.

        ``task_ids`` are those found in this tick.
        """
        if not tasks.has_free(now_ms=self._clock()):
            return None
        counts = Counter(task.user_id for task in self._held.values())
        busy_users = [user_id for user_id, count in counts.items() if count >= HELD_OF_USER]
        while not self._stop.is_set():
            find = partial(tasks.find_claimable, now_ms=self._clock(), kinds=list(self._pieces))
            with read_scope() as session:
                task_id = find(session, but_of=busy_users, but=task_ids)
            if task_id is None:
                return None
            task_ids.append(task_id)
            claim = partial(tasks.claim_task, owner=self._node, now_ms=self._clock(), lease_ms=LEASE_MS)
            task = transact(partial(claim, task_id=task_id))
            if task is not None:
                logger.info("task claimed task_id=%s kind=%s done=%s", task.id, task.kind, task.done)
                self._held[task.id] = task
                return task.id
        return None

    def _try_turn(self, task_id: int, errors: list[Exception]) -> None:
        try:
            self._take_turn(task_id)
        except Exception as exc:
            errors.append(exc)

    def _take_turn(self, task_id: int) -> None:
        until = time.monotonic() + TURN_S
        while not self._stop.is_set():
            turn = Turn(self._held[task_id], clock=self._clock)
            try:
                self._run_piece(turn)
            except TaskLost:
                logger.info("task lost task_id=%s", task_id)
                del self._held[task_id]
                return
            if turn.task.state != TaskState.RUNNING:
                logger.info("task ended task_id=%s state=%s", task_id, turn.task.state)
                del self._held[task_id]
                return
            self._held[task_id] = turn.task
            if time.monotonic() >= until:
                return
            self._stop.wait(PAUSE_S)

    def _run_piece(self, turn: Turn) -> None:
        """Do one piece; an error ends the task. Raises TaskLost, and DBAPIError for another attempt."""
        try:
            if turn.task.claims > CLAIMS_MAX:
                raise TaskRefused(WORKERS_ENDED)
            self._pieces[turn.task.kind](turn)
        except TaskLost:
            raise
        except TaskRefused as exc:
            turn.fail(exc.reason)
        except XxlJobError as exc:
            turn.fail(exc.args[0])
        except DBAPIError as exc:
            if not is_of_data(exc):
                raise
            self._failures[turn.task.id] += 1
            if self._failures[turn.task.id] < ATTEMPTS:
                raise
            logger.error("task piece refused task_id=%s database_error=%s", turn.task.id, exc.orig)
            turn.fail(DATABASE_REFUSED)
        except Exception:
            logger.exception("task piece failed task_id=%s", turn.task.id)
            turn.fail(UNEXPECTED)
        self._failures.pop(turn.task.id, None)
