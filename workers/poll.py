"""Poll for due fires that no ring holds: written by the console or left by a dead or restarted node.

Runs at once after a wake-up signal (``app.wake_up``), otherwise periodically.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from sqlalchemy.exc import DBAPIError

from app.clock import now_ms
from app.database_faults import fault_log
from app.domain.planning import DueFire
from app.pipeline.claim import find_unseen
from app.pipeline.late import LATE_MS, settle_late
from workers.lanes import Lanes

logger = logging.getLogger(__name__)

#: period without wake-ups, and shortest interval between two polls
PERIOD_S = 0.25
APART_S = 0.02
#: period while fires wait to be claimed: those the poll finds would wait behind them
BUSY_PERIOD_S = 1.0
#: period of the check whether fires still wait
BUSY_CHECK_S = 0.01
#: rows of one poll
ROWS = 1_000
#: wait after a database error, here and in the dispatcher
DATABASE_WAIT_S = 1.0


class Poll:
    """Finds due fires and passes on those to be run; ``run`` belongs to the dispatcher's loop."""

    def __init__(
        self,
        node: str,
        zone: str,
        lanes: Lanes,
        *,
        take: Callable[[Sequence[DueFire]], None],
        may_fire: Callable[[], bool],
    ) -> None:
        self._node = node
        self._zone = zone
        self._lanes = lanes
        self._take = take
        self._may_fire = may_fire
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="dispatch-poll")
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Poll at once; from the loop's thread."""
        self._woken.set()

    def close(self) -> None:
        """Wait for the statement that is being executed."""
        self._reader.shutdown(wait=True)

    async def run(self) -> None:
        """Poll until cancelled."""
        loop, after_id = asyncio.get_running_loop(), 0
        while True:
            started = loop.time()
            find = partial(find_unseen, self._node, after_id=after_id, now_ms=now_ms(), limit=ROWS)
            try:
                found = await loop.run_in_executor(self._reader, find)
                fresh = [fire for fire in found if not self._lanes.is_backed_off(fire.id, loop.time())]
                if fresh and self._may_fire():
                    self._take(await self._without_late(fresh))
            except DBAPIError as exc:
                fault_log.write(logger, "poll failed", exc)
                await asyncio.sleep(DATABASE_WAIT_S)
                continue
            except Exception:
                logger.exception("poll failed")
                await asyncio.sleep(DATABASE_WAIT_S)
                continue
            after_id = found[-1].id if len(found) == ROWS else 0
            await self._pause(started)

    async def _without_late(self, found: list[DueFire]) -> list[DueFire]:
        """Settle late fires unknown to this process; return the others."""
        unseen = [
            fire for fire in found if fire.due_time <= now_ms() - LATE_MS and not self._lanes.knows(fire.id)
        ]
        if not unseen:
            return found
        settle = partial(settle_late, unseen, node=self._node, zone=self._zone, now_ms=now_ms())
        settled = await asyncio.get_running_loop().run_in_executor(self._reader, settle)
        return [fire for fire in found if fire.id not in settled]

    async def _pause(self, started: float) -> None:
        """Wait for a wake-up or PERIOD_S; while fires wait to be claimed, up to BUSY_PERIOD_S."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(APART_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), PERIOD_S - APART_S)
        while self._lanes.waiting and loop.time() < started + BUSY_PERIOD_S:
            await asyncio.sleep(BUSY_CHECK_S)
        self._woken.clear()
