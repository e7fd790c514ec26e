"""Run chain: the cause of a run (its parent, or the failed run it retries), and the runs that follow it."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.enums import TriggerType
from app.models.log import JobLog
from app.services.runs import rows
from app.services.runs.rows import LogRow
from app.store.runs import listing as log_lists

#: most following runs shown
FOLLOWERS_MAX = 50
#: most attempts before a retry shown
ATTEMPTS_MAX = 10
_OTHERS = (TriggerType.AFTER, TriggerType.RETRY)


@dataclass(frozen=True, slots=True)
class Chain:
    """Runs before and after a run that the reader may see."""

    #: the run that caused it; None if there is none, or it is deleted or not visible
    source: JobLog | None
    children: list[LogRow]
    #: of the jobs that run after its job, where it was the last predecessor
    followers: list[LogRow]
    retries: list[LogRow]
    #: whether there are more than FOLLOWERS_MAX
    cut: bool
    #: ids of the attempts before this one, oldest first; without deleted and invisible ones
    attempts: list[int]


def chain_of(session: Session, log: JobLog, *, actor: Actor) -> Chain:
    """Return the runs before and after a run, without those of groups the actor cannot see."""
    source = log_lists.find_log(session, log.source_log_id) if log.source_log_id else None
    if source is not None and not actor.may(source.job_group, Right.VIEW):
        source = None
    followers = log_lists.find_successors(
        session, log.id, group_ids=actor.group_ids(Right.VIEW), limit=FOLLOWERS_MAX + 1
    )
    log_rows = rows.log_rows(session, followers[:FOLLOWERS_MAX], actor=actor)
    return Chain(
        source=source,
        children=[row for row in log_rows if row.log.trigger_type not in _OTHERS],
        followers=[row for row in log_rows if row.log.trigger_type == TriggerType.AFTER],
        retries=[row for row in log_rows if row.log.trigger_type == TriggerType.RETRY],
        cut=len(followers) > FOLLOWERS_MAX,
        attempts=_attempts(session, log, source, actor),
    )


def _attempts(session: Session, log: JobLog, source: JobLog | None, actor: Actor) -> list[int]:
    """Return the attempts before a retry, at most ATTEMPTS_MAX, each found by its id."""
    attempts: list[int] = []
    while log.trigger_type == TriggerType.RETRY and source is not None and len(attempts) < ATTEMPTS_MAX:
        attempts.append(source.id)
        log, source_id = source, source.source_log_id
        source = log_lists.find_log(session, source_id) if source_id else None
        if source is not None and not actor.may(source.job_group, Right.VIEW):
            break
    return attempts[::-1]
