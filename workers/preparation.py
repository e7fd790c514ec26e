"""Preparation of fires that are due soon, between the claims of the dispatcher; belongs to its loop."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from sqlalchemy.orm import Session

from app.batch_writer import BatchWriter
from app.clock import Millis, now_ms
from app.database_faults import AWAY, fault_log
from app.domain.planning import DueFire
from app.pipeline.claim import ClaimBatch
from app.pipeline.claimed import Claimer
from app.pipeline.prepare import Prepared, prepare

logger = logging.getLogger(__name__)

#: fires of one transaction, so that due ones do not wait for long
GROUP = 500
#: none is prepared that is due sooner than this
LEAST_AHEAD_MS: Millis = 50
#: how long one fire takes while nothing is known of the database, and the part of a new figure in the average
FIRST_MS = 0.1
NEW_PART = 0.3
#: time allowed for many, as a multiple of what they take: claims and outcomes are written meanwhile
MARGIN = 1.5


class Preparation:
    """Fires that are due soon, and those of them that are prepared."""

    def __init__(self, claimer: Claimer, writer: BatchWriter, may_fire: Callable[[], bool]) -> None:
        self._claimer = claimer
        self._writer = writer
        self._may_fire = may_fire
        #: fires to be prepared
        self.waiting: list[DueFire] = []
        #: by fire id, until they are claimed
        self.prepared: dict[int, Prepared] = {}
        self._each_ms = FIRST_MS

    def time_for(self, fires: int) -> Millis:
        """Return how long the preparation of so many fires may take; from any thread."""
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

        def prepare_group(session: Session, group: Sequence[DueFire]) -> dict[int, Prepared]:
            return prepare(session, group, self._claimer, now_ms=now_ms())

        began = time.monotonic()
        try:
            if group and self._may_fire():
                for prepared in await self._writer.write(group, prepare_group):
                    self.prepared |= prepared
                each_ms = (time.monotonic() - began) * 1000 / len(group)
                self._each_ms += (each_ms - self._each_ms) * NEW_PART
        except AWAY as exc:
            fault_log.write(logger, f"fires not prepared fires={len(group)}", exc)

    def forget(self, due: Iterable[DueFire], batches: Iterable[ClaimBatch]) -> None:
        """Drop fires whose claim was tried, but for those that wait for their address."""
        parked = {fire.id for batch in batches for fires in batch.parked.values() for fire in fires}
        for fire in due:
            if fire.id not in parked:
                self.prepared.pop(fire.id, None)
