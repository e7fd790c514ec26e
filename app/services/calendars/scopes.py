"""Scopes of blackouts: which jobs have the tag of one, and what changes when jobs get other tags or groups.

That a job had a tag is noted with the time from when until when, so that the past stays known.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Clock, Millis, monotonic_ms
from app.database.engine import read_scope, transact
from app.domain.text.texts import fold
from app.pipeline.calendars.changes import begin_change
from app.store.base import locks
from app.store.calendars import blackouts as store
from app.store.calendars import current_book
from app.store.calendars.blackouts import LastingScope

#: period of the comparison
PERIOD_MS: Millis = 10 * SECOND_MS


class _Changes(NamedTuple):
    """What is not as it is noted: blackouts with jobs that have their tags by now, or no more."""

    new_pairs: Collection[tuple[int, int]]
    #: (blackout, job) -> row
    old_pairs: dict[tuple[int, int], int]

    @property
    def job_ids(self) -> set[int]:
        """The jobs whose tags have changed."""
        return {job_id for _, job_id in (*self.new_pairs, *self.old_pairs)}


def hold_scopes(session: Session, *, now_ms: Millis) -> bool:
    """Lock what a change of tags or groups needs besides the jobs; False: no blackout goes by either.

    Called before jobs are locked.
    """
    if not store.find_scopes(session, now_ms=now_ms):
        return False
    locks.take_schedule_lock(session)
    return True


def keep_scopes(
    session: Session, job_ids: Collection[int] | None, *, new_job_ids: Collection[int] = (), clock: Clock
) -> None:
    """Note which of these jobs (None: all) have the tags of blackouts by now, and plan the changed ones anew.

    ``new_job_ids``: jobs that are of another group now. The caller has locked and written the jobs, after
    ``hold_scopes`` has returned True.
    """
    session.flush()
    scopes = store.find_scopes(session, now_ms=clock())
    changes = _find_changes(session, scopes, job_ids)
    is_moved = new_job_ids if any(scope.group_id is not None for scope in scopes) else ()
    if not (concerned_ids := {*changes.job_ids, *is_moved}):
        return
    change = begin_change(session, sorted(concerned_ids), clock=clock)
    store.add_members(session, sorted(changes.new_pairs), now_ms=change.now_ms)
    store.end_members(session, changes.old_pairs.values(), now_ms=change.now_ms)
    change.finish(session)


def tick_members(now_ms: Millis, monotonic: Callable[[], Millis] = monotonic_ms) -> Millis:
    """Note the tags of jobs that another program has changed; return the wait until the next round.

    Also those of a change that was committed while a blackout was being made. Opens its own transactions.
    """
    began_ms, blackouts = monotonic(), current_book.current().blackouts
    if any(
        blackout.tag and (blackout.until_ms is None or blackout.until_ms > now_ms) for blackout in blackouts
    ):
        with read_scope() as session:
            changes = _find_changes(session, store.find_scopes(session, now_ms=now_ms), None)
        if changes.job_ids:
            # A change that has waited for the lock begins when it has it.
            transact(partial(_keep_all, clock=lambda: now_ms + monotonic() - began_ms))
    return PERIOD_MS


def _keep_all(session: Session, clock: Clock) -> None:
    if hold_scopes(session, now_ms=clock()):
        keep_scopes(session, None, clock=clock)


def _find_changes(
    session: Session, scopes: Sequence[LastingScope], job_ids: Collection[int] | None
) -> _Changes:
    tags = {scope.id: fold(scope.tag) for scope in scopes if scope.tag}
    if not tags:
        return _Changes((), {})
    pairs = {(member.blackout_id, member.job_id): member.id for member in store.find_members(session, tags)}
    job_tags = store.find_tagged(session, tags.values())
    present = {(key, job_id) for key, tag in tags.items() for job_id, job_tag in job_tags if job_tag == tag}
    if job_ids is not None:
        ids = set(job_ids)
        pairs = {pair: member_id for pair, member_id in pairs.items() if pair[1] in ids}
        present = {pair for pair in present if pair[1] in ids}
    return _Changes(
        present - pairs.keys(),
        {pair: member_id for pair, member_id in pairs.items() if pair not in present},
    )
