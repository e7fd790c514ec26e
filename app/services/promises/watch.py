"""Watch over promises: one round of planning, evaluation and incidents, by the monitor or by a console.

A console does what workers have left undone for some seconds, so promises are watched while all workers are
dead, too. Both may do it at once: every row is locked by one of them.
"""

from functools import partial

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Clock, Millis, now_ms
from app.database.engine import read_scope, transact
from app.domain.promises.judgement import GRACE_MS
from app.services.promises import incidents
from app.services.promises.evaluation import ROWS, Evaluation, evaluate_due, overdue_runs
from app.services.promises.planning import PERIOD_MS, plan
from app.store.promises import checks, evidence
from app.store.promises.evidence import OpenRun

#: period of a round
ROUND_MS: Millis = SECOND_MS
#: period in which incidents are ended
ENDS_MS: Millis = 2 * SECOND_MS
#: batches of one round; more are due only after a stop of all nodes
BATCHES = 20


class PromiseWatch:
    """Watch over promises."""

    def __init__(self, *, node: str, clock: Clock = now_ms) -> None:
        self._node = node
        self._clock = clock
        self._planned_ms: Millis = 0
        self._ended_ms: Millis = 0
        #: last incident of the round before; 0: begin again
        self._ended_id = 0
        #: run and number of the promise of open runs that have an incident
        self._reported = set[tuple[int, int]]()

    def tick(self, at_ms: Millis, behind_ms: Millis = 0) -> Millis:
        """Do one round; return the wait until the next. Opens its own transactions.

        ``behind_ms``: how long after its due time it does what others have not.
        """
        if not 0 <= at_ms - self._planned_ms < PERIOD_MS:
            self._planned_ms = at_ms
            plan(now_ms=at_ms, behind_ms=behind_ms)
        before_ms = at_ms - GRACE_MS - behind_ms
        for _ in range(BATCHES):
            if not checks.has_due(before_ms=before_ms):
                break
            evaluate = partial(evaluate_due, before_ms=before_ms, clock=self._clock, node=self._node)
            if transact(evaluate) < ROWS:
                break
        self._check_open(at_ms - behind_ms)
        if not 0 <= at_ms - self._ended_ms < ENDS_MS:
            self._ended_ms = at_ms
            end = partial(incidents.end_incidents, now_ms=at_ms, after_id=self._ended_id)
            self._ended_id = transact(end)
        return ROUND_MS

    def _check_open(self, at_ms: Millis) -> None:
        """Open incidents for the runs in progress that take too long, once for each run and promise."""
        with read_scope() as session:
            overdue = overdue_runs(evidence.find_open(session), now_ms=at_ms)
        keys = {(run.log_id, run.number) for run in overdue}
        new = [run for run in overdue if (run.log_id, run.number) not in self._reported]
        if new:
            transact(partial(self._judge_open, runs=new))
        self._reported = keys

    def _judge_open(self, session: Session, runs: list[OpenRun]) -> None:
        Evaluation(session, clock=self._clock, node=self._node).judge_open(runs)
