"""Callback store: results that executors report, written before the callback is answered."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.batch_writer import BatchWriter
from app.clock import now_ms
from app.domain.enums import HandleCode
from app.pipeline import complete
from app.services.runs.kills import kills
from executor_client.callback_protocol import CallbackItem

logger = logging.getLogger(__name__)

#: how long a stop waits for callbacks that are being stored
CLOSE_TIMEOUT_S = 10.0


class _Stored(NamedTuple):
    """Number of runs ended by a request, and its late callbacks: log id, code, code of the row."""

    won: int
    late: list[tuple[int, int, int]]


class CallbackStore:
    """Stores reported results; those of concurrent requests share a transaction."""

    def __init__(self) -> None:
        self._writer = BatchWriter("callbacks")

    def store(self, items: tuple[CallbackItem, ...]) -> int:
        """Commit results and return how many of them ended a run.

        Successes of a run that is being killed wait for the kill first, see ``kills``.
        """
        kills.wait([item.log_id for item in items if item.handle_code == HandleCode.SUCCESS])
        if not items:
            return 0
        stored = self._writer.submit(items, _store)
        for log_id, code, has_code in stored.late:
            logger.info("callback ignored log_id=%s code=%s has_code=%s", log_id, code, has_code)
        return stored.won

    def close(self) -> None:
        """Write the queued results, then end the thread."""
        self._writer.close(CLOSE_TIMEOUT_S)


def _store(session: Session, batches: Sequence[tuple[CallbackItem, ...]]) -> list[_Stored]:
    """Store the results of several requests in one transaction."""
    at_ms = now_ms()
    items = [item for batch in batches for item in batch if item.handle_code != HandleCode.NONE]
    results = [
        complete.callback_result(item.log_id, item.handle_code, item.handle_msg)
        for item in items
        if 0 < item.log_id < 2**63
    ]
    done = complete.complete(session, results, now_ms=at_ms)
    won = set(done.won)
    return [
        _Stored(
            sum(item.log_id in won for item in batch),
            [
                (item.log_id, item.handle_code, done.late[item.log_id])
                for item in batch
                if item.handle_code != HandleCode.NONE and item.log_id in done.late
            ],
        )
        for batch in batches
    ]
