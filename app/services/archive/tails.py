"""Tails of logs that executors of ours send while they stop: one more pull, with the same conditions."""

from functools import partial

from app.blobs.stores import store_of
from app.clock import Clock, now_ms
from app.database.engine import read_scope, transact
from app.domain.archive.kinds import FETCHED
from app.domain.executors.token_scope import TokenScope
from app.errors import Conflict, NotFound, PermissionDenied
from app.executors.gateway import Gateway
from app.pipeline.masking import find_maskers
from app.services.archive.pulls import Puller
from app.services.executors.callers import Caller
from app.settings.config import Config
from app.store.archive import room, rows
from app.store.archive.rows import ArchivedLog
from app.store.runs import listing as log_lists
from executor_client.wire.log_tails import LogTail

NO_RUN = "no run with this logId and logDateTim was sent"
NOT_OF_TOKEN = "the access token is not that of the run's executor group"


class TailStore:
    """Stores the tails of logs."""

    def __init__(self, config: Config, *, clock: Clock = now_ms) -> None:
        caller = Caller(Gateway(config.executor_networks), ())
        self._puller = Puller.of(config.archive, caller, store_of(config), clock)
        self._clock = clock

    def store(self, tail: LogTail, scope: TokenScope) -> int:
        """Store what is new of a tail; return the line that is wanted next, 0: none. Opens its transactions.

        Raises NotFound, PermissionDenied, StoreFull, and Conflict if another writer was faster.
        """
        with read_scope() as session:
            run = log_lists.find_log(session, tail.log_id)
            if run is None or run.trigger_time != tail.log_date_time or not run.executor_address:
                raise NotFound(NO_RUN)
            if not scope.covers(run.job_group):
                raise PermissionDenied(NOT_OF_TOKEN)
            log = rows.find_of_logs(session, [tail.log_id]).get(tail.log_id)
            if log is None or log.state not in FETCHED:
                return 0
            if room.size_of(session, log.key) >= self._puller.job_day_max:
                return 0
            masker = find_maskers(session, [run], now_ms=self._clock()).get(run.id)
        line_count = log.last_line + 1 - tail.from_line_num
        if line_count < 0 or line_count >= len(tail.lines):
            return log.last_line + 1
        # Secrets of several lines may begin in those that are stored already.
        lines = masker.mask("\n".join(tail.lines)).split("\n") if masker is not None else tail.lines
        return self._push(log, list(lines[line_count:]))

    def _push(self, log: ArchivedLog, lines: list[str]) -> int:
        """Store lines behind the last one; a pull in progress stores nothing after that."""
        if not transact(partial(rows.take_over, log=log)):
            raise Conflict("another writer was faster")
        self._puller.push(log._replace(epoch=log.epoch + 1), lines)
        return log.last_line + len(lines) + 1
