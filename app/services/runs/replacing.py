"""Replacement: kills the runs in progress of jobs whose `when_full` is ``replace`` and whose next run waits.

Their slots are free once they have ended; a run whose kill is not confirmed goes on, or is resolved as any.
"""

import logging
import time
from collections.abc import Callable, Collection
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.domain.access.permissions import system_actor
from app.domain.enums import KillReason
from app.errors import ExecutorUnreachable
from app.models.log import JobLog
from app.pipeline.retries import RETRY_WAIT_MIN_MS
from app.services.executors.callers import Caller
from app.services.runs.run_actions import kill_runs
from app.store.fires import logs
from app.store.limits import slots
from app.store.limits import waiting as waiting_fires

logger = logging.getLogger(__name__)

#: period of the rounds
PERIOD_MS: Millis = 500
#: a run is killed again after this
AGAIN_S = 10.0
#: name in the change history
SCHEDULER = system_actor("scheduler")


class Replacement:
    """Kills runs for newer ones of their job, each again every AGAIN_S until it has ended."""

    def __init__(self, caller: Caller, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._caller = caller
        self._monotonic = monotonic
        #: log id -> when it was killed last
        self._killed: dict[int, float] = {}

    def tick(self, now_ms: Millis) -> Millis:
        """Kill the runs that are to be replaced; return the wait until the next round."""
        running = list[JobLog]()
        if slots.has_waiting():
            with read_scope() as session:
                running = waiting_fires.find_to_replace(session)
        if spared_ids := self._killed.keys() - {log.id for log in running}:
            transact(partial(_unmark, log_ids=spared_ids))
        due_s = self._monotonic() - AGAIN_S
        self._killed = {log.id: self._killed[log.id] for log in running if log.id in self._killed}
        to_kill = [log for log in running if self._killed.get(log.id, due_s) <= due_s]
        if to_kill:
            self._kill(to_kill, now_ms)
        return PERIOD_MS

    def _kill(self, running: list[JobLog], now_ms: Millis) -> None:
        def mark(session: Session) -> None:
            open_runs = logs.lock_runs(session, [log.id for log in running])
            run_ids = [run.id for run in open_runs.values() if not run.handle_code and not run.killed]
            # Before the kill, because an executor may report its failure before it answers.
            logs.mark_killed(session, run_ids, KillReason.REPLACED)

        transact(mark)
        self._killed |= dict.fromkeys([log.id for log in running], self._monotonic())
        try:
            count = kill_runs(
                running, actor=SCHEDULER, caller=self._caller, now_ms=now_ms, settle_ms=RETRY_WAIT_MIN_MS
            )
        except ExecutorUnreachable as exc:
            logger.warning("runs not ended for newer ones count=%s reason=%s", len(running), exc)
        else:
            logger.info("runs ended for newer ones count=%s", count)


def _unmark(session: Session, log_ids: Collection[int]) -> None:
    """Let runs count as any other that were not ended, and that no newer one is to replace any more."""
    runs = logs.lock_runs(session, log_ids).values()
    logs.mark_killed(
        session, [run.id for run in runs if run.is_replaced and not run.handle_code], KillReason.NO
    )
