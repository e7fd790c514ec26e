"""Rounds of jobs that are saved or deleted: `xxl_job_after` and open rounds follow what the jobs name."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.rounds.kinds import RoundReason
from app.domain.rounds.runs_after import LONGEST_MS, RunsAfter, parse_runs_after, predecessors_of
from app.models.round import Round
from app.pipeline.rounds.opening import is_gate
from app.store.base import locks
from app.store.rounds import edges, editing, following
from app.store.rounds.edges import Link
from app.store.rounds.editing import OpenRound
from app.store.rounds.following import FollowerRow


def hold_links(session: Session, job_id: int, text: str | None, *, has_children: bool) -> None:
    """Lock what the save of a job needs besides the job, if that leads to others or runs after some.

    Without the schedule lock two concurrent saves could each see no cycle, and together create one.
    ``job_id`` 0: it is new; ``text``: what it is to run after.
    """
    predecessors = set(predecessors_of(text))
    follows = bool(predecessors) or (job_id > 0 and bool(edges.find_predecessors(session, [job_id])))
    if has_children or follows:
        locks.take_schedule_lock(session)
    if follows:
        predecessors |= {link.source for link in edges.find_predecessors(session, [job_id])}
        locks.lock_groups_of(session, {known_id for known_id in (job_id, *predecessors) if known_id > 0})


def hold_predecessors(session: Session, texts: Iterable[str | None]) -> None:
    """Lock the jobs that are named by jobs which the caller has locked."""
    job_ids = {job_id for text in texts for job_id in predecessors_of(text) if job_id > 0}
    if job_ids:
        locks.lock_groups_of(session, job_ids)


def keep_edges(session: Session, former: Mapping[int, str | None], *, now_ms: Millis) -> None:
    """Store what changed jobs run after now; ``former``: job id -> text of before, None also of a new job.

    The caller has locked and written the jobs. What has arrived in their open rounds is evaluated anew; those
    end if what belongs together is not the same.
    """
    if not former:
        return
    session.flush()
    jobs = following.find_jobs(session, former)
    links = [
        Link(predecessor, job_id)
        for job_id, job in jobs.items()
        for predecessor in dict.fromkeys(predecessors_of(job.runs_after))
    ]
    edges.replace_edges(session, former, links)
    changes = _Changes()
    for row in editing.lock_open(session, former):
        changes.add(row, parse_runs_after(former[row.job_id]), jobs.get(row.job_id))
    editing.end_rounds(session, changes.ended_ids, reason=RoundReason.EDITED, now_ms=now_ms)
    bulk.update_many(session, Round, changes.deadlines)
    editing.wake_rounds(session, [row["id"] for row in changes.deadlines], now_ms=now_ms)


@dataclass(slots=True)
class _Changes:
    ended_ids: list[int] = field(default_factory=list)
    deadlines: list[bulk.Row] = field(default_factory=list)

    def add(self, open_round: OpenRound, former: RunsAfter | None, job: FollowerRow | None) -> None:
        """Add what becomes of an open round."""
        runs_after = parse_runs_after(job.runs_after) if job is not None else None
        if job is None or runs_after is None or not runs_after.has_same_rounds(former):
            self.ended_ids.append(open_round.id)
            return
        waits_for_instant = is_gate(job, open_round.chain) and not open_round.taken_ms
        wait_ms = LONGEST_MS if waits_for_instant else runs_after.wait_ms
        deadline_ms = (open_round.taken_ms or open_round.opened_ms) + wait_ms
        self.deadlines.append({"id": open_round.id, "deadline_ms": deadline_ms})


def hold_for_removal(session: Session, job_ids: Collection[int]) -> list[int]:
    """Lock jobs that are to be deleted with their predecessors; return the latter."""
    predecessors = {link.source for link in edges.find_predecessors(session, job_ids)} - set(job_ids)
    if predecessors:
        locks.lock_groups_of(session, {*job_ids, *predecessors})
    return sorted(predecessors)


def forget_jobs(
    session: Session, job_ids: Collection[int], predecessors: Collection[int], *, now_ms: Millis
) -> None:
    """Note that jobs are gone, for their ``predecessors`` and for the open rounds of their followers."""
    edges.mark_followed(session, predecessors)
    followers = {link.target for link in edges.read_edges(session, job_ids)}
    woken = [row.id for row in editing.lock_open(session, followers)]
    editing.wake_rounds(session, woken, now_ms=now_ms)
