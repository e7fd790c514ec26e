"""Callback store: results that executors report, written before the callback is answered."""

import logging
from collections.abc import Sequence

from app.clock import now_ms
from app.db import transact
from app.domain.enums import HandleCode
from app.group_commit import GroupCommit
from app.pipeline import complete
from app.services.runs.kills import kills
from executor_client.callback_protocol import CallbackItem

logger = logging.getLogger(__name__)


class CallbackStore:
    """Stores reported results; those of concurrent requests share a transaction."""

    def __init__(self) -> None:
        self._writer = GroupCommit[tuple[CallbackItem, ...], int]("callbacks", _store)

    def store(self, items: tuple[CallbackItem, ...]) -> int:
        """Commit results and return how many of them ended a run.

        Successes of a run that is being killed wait for the kill first, see ``kills``.
        """
        kills.wait([item.log_id for item in items if item.handle_code == HandleCode.SUCCESS])
        return self._writer.submit(items) if items else 0

    def close(self) -> None:
        """Write what is queued, then end the thread."""
        self._writer.close()


def _store(batches: Sequence[tuple[CallbackItem, ...]]) -> list[int]:
    """Store the results of several requests in one transaction; return for each how many ended a run."""
    at_ms = now_ms()
    items = [item for batch in batches for item in batch if item.handle_code != HandleCode.NONE]
    results = [
        complete.callback_result(item.log_id, item.handle_code, item.handle_msg)
        for item in items
        if 0 < item.log_id < 2**63
    ]
    done = transact(lambda session: complete.complete(session, results, now_ms=at_ms))
    for item in items:
        if item.log_id in done.late:
            logger.info(
                "callback ignored log_id=%s code=%s has_code=%s",
                item.log_id,
                item.handle_code,
                done.late[item.log_id],
            )
    won = set(done.won)
    return [sum(item.log_id in won for item in batch) for batch in batches]
