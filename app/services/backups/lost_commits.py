"""Lost commits: detects a database that lacks runs which were sent; one node settles it.

An asynchronous standby that was promoted lacks the last commits, and so does a SQLite file whose `-wal` was
deleted. Ids of runs would be given again, and what has fired would fire again.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Clock, Millis, monotonic_ms, now_ms
from app.database.engine import read_scope, transact
from app.domain.access.permissions import Actor, system_actor
from app.pipeline.sent_log_ids import SentLogIds
from app.services.auditing import audit
from app.services.backups.commit_loss import ACTION, is_behind
from app.services.backups.reconcile import IDS_MIN, LOST_COMMITS, Fires, end_runs, settle_fires, skip_ids
from app.services.installation.nodes import node_name
from app.settings.config import Config
from app.store.accounts import audit as audit_entries
from app.store.base import locks
from app.store.copies import whole_tables
from app.store.fires import log_ids

logger = logging.getLogger(__name__)

#: how long a database must be behind: a node of a cluster may apply the last commits of others a moment later
CONFIRM_MS: Millis = 1_000
#: the settling of a node leaves out more ids than this, far more than are sent in a second
IDS_SKIPPED = IDS_MIN // 2
#: two nodes notice a loss within this time, and their clocks differ by less
NOTICED_MS: Millis = 10 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class Recovery:
    """A database that was settled."""

    fires: Fires
    next_log_id: int


class CommitWatch:
    """Compares the database with the ids that were sent, once a scan; settles it if it stays behind."""

    def __init__(
        self, config: Config, sent_ids: SentLogIds, monotonic: Callable[[], Millis] = monotonic_ms
    ) -> None:
        self._config, self._sent, self._monotonic = config, sent_ids, monotonic
        self._node = node_name(config)
        #: since when the database is behind, by the monotonic clock
        self._since: Millis | None = None
        #: suspicions whose loss is settled
        self._settled = 0
        sent_ids.is_ahead = False  # nothing is sent before the first check

    def check(self, clock: Clock = now_ms) -> bool:
        """Whether the database has all runs that were sent; may take a while if it is settled."""
        if not self._sent.identity:
            self._sent.open(self._config.home, self._node, transact(_make_identity))
        suspicions = self._sent.suspicions
        if suspicions != self._settled:  # Whatever the newest id is by now, the lost ones may be given again.
            self._settle_proven(clock)
            self._settled = suspicions
            return False
        newest = log_ids.find_newest()
        if newest >= self._sent.highest:
            self._sent.note(newest)
        else:
            with read_scope() as session:
                behind = is_behind(session, self._sent.highest)
            if behind:
                self._settle_later(clock)
                return False
        self._since = None
        self._sent.trust(suspicions)
        return True

    def _settle_later(self, clock: Clock) -> None:
        now = self._monotonic()
        if self._since is None:
            self._since, self._sent.is_ahead = now, False
            logger.warning("commits lost newest_sent=%s", self._sent.highest)
        elif now - self._since >= CONFIRM_MS:
            highest_id, actor = self._sent.highest, system_actor(self._node)
            settle_lost(
                actor=actor,
                clock=clock,
                up_to_id=highest_id,
                unless=lambda session: not is_behind(session, highest_id),
            )

    def _settle_proven(self, clock: Clock) -> None:
        """Settle a loss that given ids have shown; if another node has, end the runs with such ids."""
        self._since, actor, own_id = None, system_actor(self._node), self._sent.own
        logger.warning("commits lost newest_sent=%s", self._sent.highest)
        is_settled = partial(_was_settled, log_id=own_id, now_ms=clock())
        if settle_lost(actor=actor, clock=clock, up_to_id=self._sent.highest, unless=is_settled) is None:
            border = own_id + IDS_SKIPPED
            transact(lambda session: end_runs(session, LOST_COMMITS, up_to=border, now_ms=clock()))


def _was_settled(session: Session, *, log_id: int, now_ms: Millis) -> bool:
    """Whether a node has settled the loss of a run with the id ``log_id``."""
    # PostgreSQL leaves ids out even if the transaction fails, so that the entry must be there, too
    recent = audit_entries.find_recent(session, (ACTION,), since_ms=now_ms - NOTICED_MS, limit=1)
    return bool(recent) and whole_tables.last_log_id(session.connection()) > log_id + IDS_SKIPPED


def settle_lost(
    *,
    actor: Actor,
    clock: Clock,
    up_to_id: int,
    since_ms: Millis | None = None,
    unless: Callable[[Session], bool] = lambda _session: False,
) -> Recovery | None:
    """Settle a database that has lost its last commits, while the services run or not, and record it.

    ``up_to_id``: the highest id that was certainly sent. ``since_ms``: commits may be lost since then.
    ``unless``: under the schedule lock, whether there is nothing to settle, as when another node has done so;
    None if so.
    """

    def settle(session: Session) -> Recovery | None:
        locks.take_schedule_lock(session)
        if unless(session):
            return None
        fires = settle_fires(session, LOST_COMMITS, clock=clock, highest_id=up_to_id)
        at_ms = clock()
        audit.record(session, ACTION, actor=actor, now_ms=at_ms, changes=asdict(fires))
        session.flush()
        since = at_ms if since_ms is None else since_ms
        next_id = skip_ids(session, since_ms=since, now_ms=at_ms, beyond=up_to_id)
        return Recovery(fires, next_id)

    recovery = transact(settle)
    if recovery is not None:
        logger.warning(
            "commits settled newest_sent=%s next_log_id=%s jobs_skipped=%s queued_skipped=%s"
            " runs_unresolved=%s",
            up_to_id,
            recovery.next_log_id,
            recovery.fires.jobs,
            recovery.fires.queued,
            recovery.fires.open_runs,
        )
    return recovery


def _make_identity(session: Session) -> str:
    locks.take_schedule_lock(session)
    return log_ids.make_identity(session)
