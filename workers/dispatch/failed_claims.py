"""Failed claims: fires that cannot be claimed though the database works; belongs to the dispatcher's loop.

Each is retried with a growing delay, and ended if the database refuses its own data.
"""

import logging
import time
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.clock import now_ms
from app.database.batch_writer import BatchWriter
from app.database.faults import AWAY, data_fault, fault_log
from app.domain.schedules.planning import DueFire
from app.pipeline.unwritable import RefusedRun, UnwritableFire, refuse
from workers.dispatch.lanes import Lanes

logger = logging.getLogger(__name__)

#: most claims of a fire whose data the database refuses
CLAIMS_MAX = 3


class FailedClaims:
    """Fires whose claim has failed."""

    def __init__(self, lanes: Lanes, writer: BatchWriter, zone: str) -> None:
        self._lanes = lanes
        self._writer = writer
        self._zone = zone
        #: pairs of a fire and the id of its job
        self._unwritable: list[tuple[UnwritableFire, int]] = []

    def observe(self, fire: DueFire, error: Exception) -> None:
        """Postpone a fire, which stays in the database, or note that its run is to be ended."""
        failures = self._lanes.back_off(fire.id, time.monotonic())
        reason = data_fault(error)
        if reason is not None and failures >= CLAIMS_MAX:
            self._unwritable.append((UnwritableFire(fire.id, reason), fire.job_id))

    async def end(self) -> None:
        """End the runs noted; if the database is away, their next claims fail as well."""
        fires, self._unwritable = self._unwritable, []
        if not fires:
            return
        jobs = {item.fire_id: job_id for item, job_id in fires}

        def refuse_group(session: Session, group: Sequence[UnwritableFire]) -> list[RefusedRun]:
            return refuse(session, group, zone=self._zone, now_ms=now_ms())

        def log(item: UnwritableFire, error: Exception) -> None:
            reason = data_fault(error) or str(error)
            logger.error(
                "run not ended job_id=%s fire_id=%s reason=%r", jobs[item.fire_id], item.fire_id, reason
            )

        try:
            items = [item for item, _ in fires]
            for runs in await self._writer.write(items, refuse_group, on_poison=log):
                for run in runs:
                    logger.error("run not started job_id=%s log_id=%s database_error=%r", *run)
        except AWAY as exc:
            fault_log.write(logger, f"runs not ended count={len(fires)}", exc)
