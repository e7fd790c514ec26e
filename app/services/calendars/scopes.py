"""Scopes of blackouts: which jobs have the tag of one, and what changes when jobs get other tags or groups.

That a job had a tag is noted with the time from when until when, so that the past stays known.
"""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.text.texts import folded
from app.pipeline.calendars.changes import begin_change
from app.store.base import locks
from app.store.calendars import blackouts as store


def hold_scopes(session: Session, *, now_ms: Millis) -> bool:
    """Lock what a change of tags or groups needs besides the jobs; False: no blackout goes by either.

    Called before jobs are locked.
    """
    if not store.find_scopes(session, now_ms=now_ms):
        return False
    locks.take_schedule_lock(session)
    return True


def keep_scopes(
    session: Session, job_ids: Collection[int] | None, *, moved: Collection[int] = (), clock: Clock
) -> None:
    """Note which of these jobs (None: all) have the tags of blackouts by now, and plan the changed ones anew.

    ``moved``: jobs that are of another group now. The caller has locked and written the jobs, after
    ``hold_scopes`` has returned True.
    """
    session.flush()
    scopes = store.find_scopes(session, now_ms=clock())
    tags = {scope.id: folded(scope.tag) for scope in scopes if scope.tag}
    noted = {(each.blackout_id, each.job_id): each.id for each in store.find_members(session, tags)}
    tagged = store.find_tagged(session, tags.values())
    present = {(key, job_id) for key, tag in tags.items() for job_id, job_tag in tagged if job_tag == tag}
    if job_ids is not None:
        wanted = set(job_ids)
        noted = {pair: member_id for pair, member_id in noted.items() if pair[1] in wanted}
        present = {pair for pair in present if pair[1] in wanted}
    added, gone = present - noted.keys(), noted.keys() - present
    changed = {job_id for _, job_id in (*added, *gone)}
    if any(scope.group_id is not None for scope in scopes):
        changed |= set(moved)
    if not changed:
        return
    change = begin_change(session, sorted(changed), clock=clock)
    store.add_members(session, sorted(added), now_ms=change.now_ms)
    store.end_members(session, [noted[pair] for pair in gone], now_ms=change.now_ms)
    change.finish(session)
