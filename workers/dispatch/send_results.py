"""Results of sends until they are written: outcomes, and runs of which nothing was sent."""

import asyncio
import logging
import time
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.clock import now_ms
from app.database.batch_writer import BatchWriter
from app.database.faults import AWAY, fault_log
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.record import give_back, record
from app.pipeline.send import SendOutcome
from workers.dispatch.claim_pace import ClaimPace
from workers.dispatch.poll import DATABASE_WAIT_S
from workers.dispatch.send_task import SendTask

logger = logging.getLogger(__name__)

#: most outcomes of one transaction, for which fires that become due have to wait
OUTCOMES_GROUP = 1_000


class SendResults:
    """Outcomes and unsent runs of this process; kept while the database is away."""

    def __init__(self, writer: BatchWriter, pace: ClaimPace, node: str) -> None:
        self._writer = writer
        self._pace = pace
        self._node = node
        self._outcomes: list[SendOutcome] = []
        self._unsent: list[ClaimedRun] = []
        #: when all outcomes were written last, by the monotonic clock
        self.written_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._outcomes or self._unsent)

    @property
    def outcomes(self) -> int:
        """How many outcomes are to be written."""
        return len(self._outcomes)

    def add(self, send: SendTask, outcome: SendOutcome | None) -> None:
        """Add the end of a send; None: nothing was sent."""
        if outcome is not None:
            self._outcomes.append(outcome)
        elif not send.is_broken:
            self._unsent.append(send.claim)

    async def write(self) -> None:
        """Write outcomes and give unsent runs back."""
        started_s = time.monotonic()
        outcomes, self._outcomes = self._outcomes[:OUTCOMES_GROUP], self._outcomes[OUTCOMES_GROUP:]
        if not self._outcomes:
            self.written_at = started_s
        unsent, self._unsent = self._unsent, []
        try:
            if outcomes:
                await self._writer.write(outcomes, self._record)
                outcomes = []
            if unsent:
                counts = await self._writer.write(unsent, self._give_back)
                logger.warning("runs given back count=%s", sum(counts))
            self._pace.observe(time.monotonic() - started_s)
        except AWAY as exc:
            fault_log.write(logger, f"outcomes not written count={len(outcomes)}", exc)
            self._outcomes = outcomes + self._outcomes
            self._unsent = unsent + self._unsent
            await asyncio.sleep(DATABASE_WAIT_S)

    def _record(self, session: Session, group: Sequence[SendOutcome]) -> None:
        record(session, group, node=self._node, now_ms=now_ms())

    def _give_back(self, session: Session, group: Sequence[ClaimedRun]) -> int:
        return give_back(session, group, node=self._node)
