"""Inherited runs: those under way when the Java admin was stopped, or the backup of such a database was made.

The resolver looks after fires, which they do not have. They end as in the original: a run whose executor is
not registered any more has failed (docs/reference/scheduling.md, section 11).
"""

import logging

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.db import read_scope, transact
from app.domain.enums import HandleCode
from app.domain.trace_templates import LOST_WITH_EXECUTOR, fill
from app.pipeline.complete import Result, Source, complete
from app.store import inherited_runs

logger = logging.getLogger(__name__)

#: period of the rounds while any such run is open; none can come later
PERIOD_MS: Millis = MINUTE_MS
#: a run that was triggered less than this ago is not lost yet
LOST_AFTER_MS: Millis = 10 * MINUTE_MS
#: runs of one round
ROUND_ROWS = 200


def tick_inherited(now_ms: Millis) -> Millis:
    """End inherited runs whose executors are gone, as failed; return the wait until the next round."""
    with read_scope() as session:
        lost = inherited_runs.find_lost(session, before_ms=now_ms - LOST_AFTER_MS, limit=ROUND_ROWS)
        if not lost and not inherited_runs.has_open(session):
            return DAY_MS
    message = fill(LOST_WITH_EXECUTOR)
    results = [Result(log_id, Source.RESOLVER, HandleCode.FAIL, message) for log_id in lost]
    if results:
        transact(lambda session: complete(session, results, now_ms=now_ms))
        logger.warning("runs of a Java admin lost, their executors are gone log_ids=%s", lost)
    return 0 if len(lost) == ROUND_ROWS else PERIOD_MS
