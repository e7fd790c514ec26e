"""Rounds of a run: the one it belongs to, its chain, and what was not run because of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import url_for
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.console.ui.rounds.rows import job_link, title_of
from app.domain.access.permissions import Actor, Right
from app.domain.rounds.cycles import reachable
from app.domain.rounds.round_keys import in_chain
from app.domain.runs.trigger_keys import number_text
from app.models.log import JobLog
from app.services.rounds import listing
from app.services.rounds.listing import RoundView
from app.store.rounds import causes
from app.store.rounds.edges import Followers
from app.store.runs import neighbours

#: jobs that are named
STOPPED_MAX = 10


@dataclass(frozen=True, slots=True)
class RunRounds:
    """Rounds around a run."""

    #: the round it belongs to; None: none, or it is gone
    round: RoundView | None
    title: str
    #: names of its predecessors, with links
    after: Sequence[Markup]
    #: its chain, as programs have it; empty: none; and the first run of that; None: gone, or not visible
    chain: str
    root_id: int | None
    #: address of the form that runs the chain again; empty without one, or without the right
    again: str
    #: jobs that were not run because of it, with links to their rounds
    stopped_jobs: Sequence[Markup]


def find_rounds(session: Session, log: JobLog, *, actor: Actor) -> RunRounds:
    """Return the rounds around a run that the actor may see."""
    round_ids = [log.round_id] if log.round_id else []
    view = next(iter(listing.find_views(session, round_ids, actor=actor).values()), None)
    is_chained = in_chain(log.chain)
    root = neighbours.find_root(session, log.chain or 0) if is_chained else None
    is_visible = root is not None and actor.may(root.job_group, Right.VIEW)
    return RunRounds(
        view,
        title_of(view) if view is not None else "",
        [job_link(predecessor) for predecessor in view.predecessors] if view is not None else [],
        number_text(log.chain or 0) if is_chained else "",
        root.id if root is not None and is_visible else None,
        again_address(root, actor),
        _stopped_jobs(session, log, actor) if log.failed else [],
    )


def again_address(root: neighbours.Root | None, actor: Actor) -> str:
    """Return the address of the form that runs a chain again; empty without one, or without the right."""
    if root is None or not actor.may(root.job_group, Right.OPERATE):
        return ""
    return url_for("job_actions.run", job_id=root.job_id, log=root.id, chain=1)


def _stopped_jobs(session: Session, log: JobLog, actor: Actor) -> list[Markup]:
    followers, _is_cut = reachable([log.job_id], Followers(session), most=causes.JOBS_MAX)
    rows = causes.find_stopped(session, log.id, followers - {log.job_id}, limit=STOPPED_MAX)
    visible = [row for row in rows if actor.may(row.group_id, Right.VIEW)]
    return [
        Markup('<a href="{}">{} {}</a>').format(
            url_for("rounds.show", round_id=row.round_id), row.job_id, row.job_name
        )
        for row in visible
    ]
