"""Inherited runs: runs that were open when the Java admin stopped, or when its database was backed up.

They have no fires, so that the resolver does not check them. They end as in XXL-JOB: a run whose executor is
not registered any more has failed (docs/reference/scheduling.md, section 11).
"""

import logging

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.enums import HandleCode
from app.domain.runs.trace_templates import LOST_WITH_EXECUTOR, fill
from app.pipeline.complete import Result, Source, complete
from app.store.runs import inherited_runs

logger = logging.getLogger(__name__)

#: period of the rounds while any such run is open
PERIOD_MS: Millis = MINUTE_MS
#: period of the search for such runs, which reads every run without a result
SEARCH_PERIOD_MS: Millis = DAY_MS
#: runs that a search finds at most
SEARCH_ROWS = 10_000
#: a run counts as lost only this long after its trigger
LOST_AFTER_MS: Millis = 10 * MINUTE_MS
#: runs of one round
ROUND_ROWS = 200


class InheritedRuns:
    """Inherited runs that wait for their result: found at the start and once a day, then looked up by id."""

    def __init__(self) -> None:
        self._log_ids: list[int] = []
        self._search_ms: Millis = 0
        self._is_whole = True

    def tick(self, now_ms: Millis) -> Millis:
        """End the runs whose executors are gone, as failed; return the wait until the next round."""
        with read_scope() as session:
            if now_ms >= self._search_ms:
                self._log_ids = inherited_runs.find_open(session, limit=SEARCH_ROWS)
                # Further ones are searched for as soon as these have ended.
                self._is_whole = len(self._log_ids) < SEARCH_ROWS
                self._search_ms = now_ms + SEARCH_PERIOD_MS
            is_lost_by_log = inherited_runs.find_waiting(
                session, self._log_ids, before_ms=now_ms - LOST_AFTER_MS
            )
        self._log_ids = list(is_lost_by_log)
        if not is_lost_by_log and self._is_whole:
            return SEARCH_PERIOD_MS
        if not is_lost_by_log:
            self._search_ms = now_ms
        lost_ids = [log_id for log_id, is_lost in is_lost_by_log.items() if is_lost][:ROUND_ROWS]
        if lost_ids:
            _end(lost_ids, now_ms)
        return 0 if len(lost_ids) == ROUND_ROWS else PERIOD_MS


def _end(log_ids: list[int], now_ms: Millis) -> None:
    results = [
        Result(log_id, Source.RESOLVER, HandleCode.FAIL, fill(LOST_WITH_EXECUTOR)) for log_id in log_ids
    ]
    ended_ids = transact(lambda session: complete(session, results, now_ms=now_ms)).run_ids
    if ended_ids:  # Another node's round may have ended them.
        logger.warning("runs of a Java admin lost, their executors are gone log_ids=%s", list(ended_ids))
