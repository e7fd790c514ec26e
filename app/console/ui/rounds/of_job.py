"""What a job runs after and what follows it, for its page: names, the rule in words, the last rounds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flask import url_for
from markupsafe import Markup, escape
from sqlalchemy.orm import Session

from app.console.ui.rounds.rows import RoundRow, rows_of
from app.console.ui.rounds.words import foreign_name, rule_text
from app.console.web.language import _
from app.domain.access.permissions import Actor, Right
from app.domain.rounds.cycles import reachable
from app.domain.rounds.runs_after import parse_runs_after
from app.models.job import Job
from app.services.rounds import listing
from app.services.rounds.listing import RoundFilter
from app.store.jobs import scheduling as job_store
from app.store.rounds import edges
from app.store.rounds.edges import Followers

#: rounds of the page of a job
ROUNDS_MAX = 5
#: jobs that follow: those that are counted, and those that are named
FOLLOWING_MAX, FOLLOWING_NAMED = 501, 10


@dataclass(frozen=True, slots=True)
class After:
    """What a job runs after, and the jobs that run after it."""

    #: names with links
    predecessors: Sequence[Markup]
    rule: str
    rounds: Sequence[RoundRow]
    followers: Sequence[Markup]


def find_after(session: Session, job: Job, *, actor: Actor) -> After:
    """Return what a job runs after and what follows it."""
    value = parse_runs_after(job.runs_after)
    links = edges.read_links(session, [job.id]) if job.has_followers else []
    followers = [link.target for link in links if not link.is_child]
    names = name_jobs(session, [*(value.jobs if value is not None else ()), *followers], actor=actor)
    rounds = (
        listing.list_rounds(session, RoundFilter(job_id=job.id), actor=actor, limit=ROUNDS_MAX)
        if value is not None
        else []
    )
    return After(
        [names[job_id] for job_id in value.jobs] if value is not None else [],
        rule_text(value),
        rows_of(rounds),
        [names[job_id] for job_id in followers],
    )


def name_jobs(session: Session, job_ids: Collection[int], *, actor: Actor) -> dict[int, Markup]:
    """Return the names of jobs with links; one that is gone or foreign says so."""
    names = job_store.find_names(session, set(job_ids))
    return {job_id: _name(job_id, names.get(job_id), actor) for job_id in job_ids}


def _name(job_id: int, job: job_store.JobName | None, actor: Actor) -> Markup:
    if job is None:
        return escape(_("%(id)s (deleted)", id=job_id))
    if not actor.may(job.job_group, Right.VIEW):
        return escape(foreign_name())
    return Markup('<a href="{}">{} {}</a>').format(url_for("jobs.show", job_id=job_id), job_id, job.job_desc)


def find_following(session: Session, job: Job, *, actor: Actor) -> list[str]:
    """Return the names of all jobs that follow a job, the first ones by name; nothing without any."""
    if not job.has_followers and not job.child_ids:
        return []
    job_ids, is_cut = reachable([job.id], Followers(session), most=FOLLOWING_MAX)
    followers = job_store.find_names(session, job_ids - {job.id})
    visible = [
        follower for _id, follower in sorted(followers.items()) if actor.may(follower.job_group, Right.VIEW)
    ]
    names = [f"{follower.id} {follower.job_desc}" for follower in visible[:FOLLOWING_NAMED]]
    more = len(followers) - len(names)
    if more:
        names.append(_("%(n)s more", n=f"{more}+" if is_cut else more))
    return names
