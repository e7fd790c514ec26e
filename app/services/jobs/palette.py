"""Command palette: jobs, runs, executor groups and users by a text, a few of each that the actor may see."""

import re
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.models.log import JobLog
from app.services.jobs.choices import Choice, offer_groups, offer_jobs, offer_users
from app.store.jobs import listing
from app.store.runs import listing as log_lists

#: most matches of a kind
MATCHES_MAX: Final = 6
#: a run by its id, such as "#6379"
_RUN = re.compile(r"#?([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Matches:
    """What a text finds. ``states`` has of each job whether its schedule is on."""

    jobs: tuple[Choice, ...]
    states: dict[int, bool]
    run: JobLog | None = None
    groups: tuple[Choice, ...] = ()
    users: tuple[Choice, ...] = ()


def find_matches(session: Session, text: str, *, actor: Actor) -> Matches:
    """Return the first matches of each kind; executor groups and users have pages for administrators only."""
    if not text:
        return Matches((), {})
    offer = offer_jobs(session, text.removeprefix("#"), actor=actor, right=Right.VIEW)
    jobs = tuple(offer.choices[:MATCHES_MAX])
    job_by_id = listing.find_listed(session, [int(job.value) for job in jobs])
    states = {job_id: job.trigger_status == 1 for job_id, job in job_by_id.items()}
    run = _find_run(session, text, actor)
    if not actor.is_admin:
        return Matches(jobs, states, run)
    groups = tuple(offer_groups(session, text, actor=actor, right=Right.VIEW).choices[:MATCHES_MAX])
    users = tuple(offer_users(session, text, actor=actor).choices[:MATCHES_MAX])
    return Matches(jobs, states, run, groups, users)


def _find_run(session: Session, text: str, actor: Actor) -> JobLog | None:
    """Return the run of an id; None if there is none or the actor may not see it."""
    match = _RUN.fullmatch(text)
    if match is None:
        return None
    log = log_lists.find_log(session, int(match[1]))
    return log if log is not None and actor.may(log.job_group, Right.VIEW) else None
