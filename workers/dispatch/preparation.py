"""Preparation of fires that are due soon, between the claims of the dispatcher; belongs to its loop."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.database.batch_writer import BatchWriter
from app.database.faults import AWAY, fault_log
from app.domain.schedules.planning import DueFire
from app.pipeline.claim import ClaimBatch
from app.pipeline.claimed_run import Claimer
from app.pipeline.prepare import PreparedFire, prepare

logger = logging.getLogger(__name__)

#: fires of one transaction, so that due ones do not wait for long
GROUP = 500
#: minimum lead time: fires due sooner are not prepared
LEAST_AHEAD_MS: Millis = 50
#: assumed time for one fire until some have been prepared, in ms
FIRST_EACH_MS = 0.1
#: weight of a group of GROUP in the mean; a smaller one counts less, since it takes longer for each
NEW_WEIGHT = 0.3
#: time allowed, as a multiple of the mean: claims and outcomes are written in between
MARGIN = 1.5


def _leave_to_claim(_fire: DueFire, _error: Exception) -> None:
    """Ignore a fire whose data is refused: its claims end its run."""


class Preparation:
    """Fires that are due soon, and those of them that are prepared."""

    def __init__(
        self,
        claimer: Claimer,
        writer: BatchWriter,
        may_fire: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._claimer = claimer
        self._writer = writer
        self._may_fire = may_fire
        self._monotonic = monotonic
        #: fires to be prepared
        self.waiting: list[DueFire] = []
        #: by fire id, until they are claimed
        self.prepared: dict[int, PreparedFire] = {}
        #: mean time for one fire of recent groups, in ms
        self._each_ms = FIRST_EACH_MS

    def preparing_ms(self, fires: int) -> Millis:
        """Return how long before they are due so many fires should be prepared; from any thread."""
        return round(fires * self._each_ms * MARGIN)

    def add(self, ahead: Iterable[DueFire]) -> None:
        """Add fires that are due soon; drop those that have waited until it is too late."""
        until_ms = now_ms() + LEAST_AHEAD_MS
        self.waiting = [fire for fire in (*self.waiting, *ahead) if fire.due_time > until_ms]

    async def advance(self) -> None:
        """Prepare a group of fires; those that are due by then are claimed like any."""
        until_ms = now_ms() + LEAST_AHEAD_MS
        group = [fire for fire in self.waiting[:GROUP] if fire.due_time > until_ms]
        self.waiting = self.waiting[GROUP:]

        def prepare_group(session: Session, group: Sequence[DueFire]) -> dict[int, PreparedFire]:
            return prepare(session, group, self._claimer, now_ms=now_ms())

        began_s = self._monotonic()
        try:
            if group and self._may_fire():
                batches = await self._writer.write(group, prepare_group, on_poison=_leave_to_claim)
                for fires in batches:
                    log_ids = [fire.claim.log_id for fire in fires.values()]
                    # Ids that are not new belong to runs that the database has lost.
                    if self._claimer.sent_log_ids.admit((), log_ids):
                        self.prepared |= fires
                fire_ms = (self._monotonic() - began_s) * 1000 / len(group)
                self._each_ms += (fire_ms - self._each_ms) * NEW_WEIGHT * len(group) / GROUP
        except AWAY as exc:
            fault_log.write(logger, f"fires not prepared fires={len(group)}", exc)

    def forget(self, due: Iterable[DueFire], batches: Iterable[ClaimBatch]) -> None:
        """Drop fires whose claim was tried, but for those that wait for their address."""
        parked_ids = {fire.id for batch in batches for fires in batch.parked_fires.values() for fire in fires}
        for fire in due:
            if fire.id not in parked_ids:
                self.prepared.pop(fire.id, None)
