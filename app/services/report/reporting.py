"""Daily report and retention: ticks of the monitor."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.jobs.variables import KEPT_MS
from app.services.accounts.login_throttle import FORGET_AFTER_MS, KNOWN_MS
from app.services.installation.promotion_leftovers import clear_leftovers
from app.services.report.retention import delete_old_runs
from app.settings.config import Config
from app.store.accounts import api_tokens, throttle
from app.store.alarms import clearing as alarm_clearing
from app.store.alarms import mutes
from app.store.backfills import records as backfills
from app.store.executors import last_seen
from app.store.nodes import idempotency, nodes, orphans, tasks
from app.store.promises import clearing as promise_clearing
from app.store.rounds import editing as rounds
from app.store.runs import reporting
from app.store.runs.reporting import Counts
from app.store.variables import variables

logger = logging.getLogger(__name__)

#: counting period of today, and of the two days before
TODAY_PERIOD_MS: Millis = 60_000
EARLIER_PERIOD_MS: Millis = 600_000
#: days counted, as in the original
DAYS = 3
#: older days counted by group per tick, and the wait while more remain
LATE_DAYS = 5
LATE_WAIT_MS: Millis = 1_000
#: rows per delete, and the pause between two so that dispatch goes first
DELETE_ROWS = 1_000
DELETE_WAIT_MS: Millis = 50
#: period of the search for old rows when none are left
CLEAN_PERIOD_MS: Millis = 600_000
#: retention of audit rows and skips
TRACE_DAYS = 365
#: retention of last-seen times
LAST_SEEN_DAYS = 90
#: retention of nodes that do not run: a container without a name of its own is a new node at each start
NODE_DAYS = 30
#: retention of ended tasks with their results; few per delete, because each has up to 2,000 lines
TASK_DAYS = 30
TASKS_AT_ONCE = 20
#: each may have 10,000 instants
BACKFILLS_AT_ONCE = 1
#: retention of API tokens that were revoked or have expired: a refusal names them
TOKEN_DAYS = 90
#: retention of the answers to requests with an idempotency key, as ``app.api.v1`` promises it
IDEMPOTENT_DAYS = 1


def midnight_ms(now_ms: Millis, zone: str, days_back: int = 0) -> Millis:
    """Return the start of a local day."""
    day = datetime.fromtimestamp(now_ms / 1000, ZoneInfo(zone)).replace(
        hour=0, minute=0, second=0, microsecond=0, fold=0
    )
    return int((day - timedelta(days=days_back)).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000


class Reporter:
    """Run counter: counts the runs of the last days."""

    def __init__(self, config: Config) -> None:
        self._zone = config.time_zone
        self._earlier_ms: Millis = 0

    def tick(self, now_ms: Millis) -> Millis:
        """Count today, and less often the two days before, whose runs may have ended since."""
        earlier = now_ms >= self._earlier_ms
        for back in range(DAYS if earlier else 1):
            self._count_day(now_ms, back)
        if earlier:
            self._earlier_ms = now_ms + EARLIER_PERIOD_MS
        with read_scope() as session:
            late = reporting.find_uncounted_days(session, limit=LATE_DAYS)
        for day_ms in late:
            self._write(day_ms, midnight_ms(day_ms, self._zone, -1), reporting.save_groups)
        return LATE_WAIT_MS if len(late) == LATE_DAYS else TODAY_PERIOD_MS

    def _count_day(self, now_ms: Millis, back: int) -> None:
        from_ms, until_ms = midnight_ms(now_ms, self._zone, back), midnight_ms(now_ms, self._zone, back - 1)
        self._write(from_ms, until_ms, partial(reporting.save_report, now_ms=now_ms))

    def _write(
        self, from_ms: Millis, until_ms: Millis, save: Callable[[Session, Millis, Mapping[int, Counts]], None]
    ) -> None:
        """Count a day and store the counts."""
        with read_scope() as session:
            counts = reporting.count_runs(session, from_ms=from_ms, until_ms=until_ms)
        try:
            transact(lambda session: save(session, from_ms, counts))
        except IntegrityError:
            logger.debug("report of a day written by another node at the same time")


class Cleaner:
    """Retention: deletes old rows in small batches."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._zone = config.time_zone
        self._days = config.log_retention_days

    def tick(self, now_ms: Millis) -> Millis:
        """Delete one batch of each kind; return a short wait while more remain."""
        traces_ms = now_ms - TRACE_DAYS * DAY_MS
        counts = [
            transact(partial(reporting.delete_traces_before, before_ms=traces_ms, limit=DELETE_ROWS)),
            _delete_of_api(now_ms),
            _delete_counters(now_ms),
            transact(partial(variables.delete_former, before_ms=now_ms - KEPT_MS, limit=DELETE_ROWS)),
        ]
        tasks_ms = now_ms - TASK_DAYS * DAY_MS
        old_tasks = transact(partial(tasks.delete_ended, before_ms=tasks_ms, limit=TASKS_AT_ONCE))
        midnights = partial(midnight_ms, now_ms, self._zone)
        total = delete_old_runs(self._days, midnights, limit=DELETE_ROWS)
        counts.append(total)
        if total:
            logger.info("old log rows deleted count=%s days=%s", total, self._days)
        before_ms = midnights(self._days) if self._days else tasks_ms
        old_backfills = transact(
            partial(backfills.delete_ended, before_ms=before_ms, limit=BACKFILLS_AT_ONCE)
        )
        if self._days:
            counts += [
                transact(partial(alarm_clearing.delete_old, before_ms=before_ms, limit=DELETE_ROWS)),
                transact(partial(promise_clearing.delete_ended, before_ms=before_ms, limit=DELETE_ROWS)),
                transact(partial(rounds.delete_old, before_ms=before_ms, limit=DELETE_ROWS)),
            ]
        if DELETE_ROWS in counts or old_tasks == TASKS_AT_ONCE or old_backfills == BACKFILLS_AT_ONCE:
            return DELETE_WAIT_MS
        transact(partial(reporting.delete_expired_sessions, now_ms=now_ms))
        transact(partial(last_seen.delete_old, before_ms=now_ms - LAST_SEEN_DAYS * DAY_MS))
        transact(partial(nodes.delete_silent, before_ms=now_ms - NODE_DAYS * DAY_MS))
        transact(api_tokens.forget_missing_groups)
        _end_orphaned_mutes(now_ms)
        clear_leftovers(self._config)
        return DELETE_WAIT_MS if _delete_orphans() == DELETE_ROWS else CLEAN_PERIOD_MS


def _delete_of_api(now_ms: Millis) -> int:
    """Delete ended tokens and old answers of the API; return the larger number."""
    ended_ms, answered_ms = now_ms - TOKEN_DAYS * DAY_MS, now_ms - IDEMPOTENT_DAYS * DAY_MS
    return max(
        transact(partial(api_tokens.delete_ended, before_ms=ended_ms, limit=DELETE_ROWS)),
        transact(partial(idempotency.delete_old, before_ms=answered_ms, limit=DELETE_ROWS)),
    )


def _delete_counters(now_ms: Millis) -> int:
    """Delete counters of failed attempts that no longer count; return how many."""
    before_ms, known_before_ms = now_ms - FORGET_AFTER_MS, now_ms - KNOWN_MS
    deletion = partial(
        throttle.delete_old, before_ms=before_ms, known_before_ms=known_before_ms, limit=DELETE_ROWS
    )
    return transact(deletion)


def _delete_orphans() -> int:
    """Delete rows orphaned by a Java admin (jobs, groups, users).

    Return the largest number deleted of a kind.
    """
    most = 0
    for relation in orphans.BELONGINGS:
        with read_scope() as session:
            ids = orphans.find_orphans(session, relation, limit=DELETE_ROWS)
        if ids:
            count = transact(partial(orphans.delete_orphans, belonging=relation, ids=ids))
            logger.info("rows without owner deleted table=%s count=%s", relation.rows.__tablename__, count)
        most = max(most, len(ids))
    return most


def _end_orphaned_mutes(now_ms: Millis) -> None:
    """End mutes whose job or group a Java admin deleted.

    The notifier sends the muted alarms and deletes them.
    """
    for relation in orphans.MUTES:
        with read_scope() as session:
            ids = orphans.find_orphans(session, relation, limit=DELETE_ROWS)
        if ids:
            transact(partial(mutes.end_mutes, mute_ids=ids, now_ms=now_ms))
