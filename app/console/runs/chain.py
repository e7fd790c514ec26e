"""What a run came from and what came of it: the parent's or the failed run before it, its children and retries behind it."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.enums import TriggerType
from app.domain.permissions import Actor, Right
from app.models.log import JobLog
from app.services.runs import rows
from app.services.runs.rows import LogRow
from app.store import log_lists

#: runs behind one run that are shown at most
FOLLOWERS_MAX = 50


@dataclass(frozen=True, slots=True)
class Chain:
    """The neighbours of one run, as far as the reader may see them."""

    #: the run before it; None where there is none, or it is deleted or foreign
    source: JobLog | None
    children: list[LogRow]
    retries: list[LogRow]
    #: there are more than are shown
    cut: bool


def chain_of(session: Session, log: JobLog, *, actor: Actor) -> Chain:
    """Return what stands before and behind a run; runs of groups the actor may not see are left out."""
    source = log_lists.find_log(session, log.source_log_id) if log.source_log_id else None
    if source is not None and not actor.may(source.job_group, Right.VIEW):
        source = None
    seen = log_lists.find_successors(
        session, log.id, group_ids=actor.group_ids(Right.VIEW), limit=FOLLOWERS_MAX + 1
    )
    shown = rows.log_rows(session, seen[:FOLLOWERS_MAX], actor=actor)
    return Chain(
        source=source,
        children=[row for row in shown if row.log.trigger_type != TriggerType.RETRY],
        retries=[row for row in shown if row.log.trigger_type == TriggerType.RETRY],
        cut=len(seen) > FOLLOWERS_MAX,
    )
