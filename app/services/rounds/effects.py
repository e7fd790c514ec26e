"""Jobs that follow one, and what becomes of them while it does not run."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.enums import ScheduleType
from app.domain.jobs.children import child_ids_of
from app.domain.rounds.effects import Effect, Follower, effects_of
from app.domain.rounds.runs_after import RunsAfter, parse_runs_after
from app.store.jobs import scheduling as job_store
from app.store.jobs.scheduling import JobName
from app.store.rounds import following

#: most jobs that are followed up, and most of them one after the other
FOLLOWED_MAX, LEVELS_MAX = 500, 100


@dataclass(frozen=True, slots=True)
class AffectedJob:
    """A job that follows; None instead of its name: the reader may not see it."""

    job: JobName | None
    effect: Effect
    #: None: it is only a child of others
    rule: RunsAfter | None


@dataclass(frozen=True, slots=True)
class SwitchOffEffects:
    """The jobs that follow one, nearest first."""

    jobs: list[AffectedJob]
    #: whether there may be more
    is_cut: bool

    def direct_ids(self, job_id: int) -> list[int]:
        """Return the ids of those that run after a job itself, and that the reader may see."""
        rows = [row for row in self.jobs if row.rule is not None and job_id in row.rule.jobs]
        return [row.job.id for row in rows if row.job is not None]


def find_affected(session: Session, job_id: int, *, actor: Actor) -> SwitchOffEffects:
    """Return the jobs that follow one which the caller has checked, with what becomes of them."""
    followers: dict[int, Follower] = {}
    children: dict[int, list[int]] = {}
    level, levels = [job_id], 0
    while level and levels < LEVELS_MAX and len(followers) < FOLLOWED_MAX:
        of_level = {
            parent: child_ids_of(text) for parent, text in following.find_children(session, level).items()
        }
        children |= of_level
        rows = {row.id: row for _predecessor, row in following.find_followers(session, level)}
        child_ids = {child for ids in of_level.values() for child in ids} - rows.keys() - followers.keys()
        rows |= following.find_jobs(session, child_ids)
        level = sorted(rows.keys() - followers.keys() - {job_id})
        for follower_id in level:
            row = rows[follower_id]
            rule, has_schedule = parse_runs_after(row.runs_after), row.schedule_type != ScheduleType.NONE
            followers[follower_id] = Follower(rule, has_schedule)
        levels += 1
    effects = effects_of(job_id, followers, children)
    names = job_store.find_names(session, effects)
    return SwitchOffEffects(
        [
            AffectedJob(_visible(names.get(follower_id), actor), effect, followers[follower_id].rule)
            for follower_id, effect in effects.items()
        ],
        is_cut=bool(level),
    )


def _visible(job: JobName | None, actor: Actor) -> JobName | None:
    return job if job is not None and actor.may(job.job_group, Right.VIEW) else None
