"""Child jobs of a run that has succeeded: their fires, and the lines about them in its result."""

from collections.abc import Collection, Iterable

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import HandleCode, TriggerType
from app.domain.jobs.children import child_id, valid_children
from app.domain.rounds.round_keys import NONE_FOLLOWS, in_chain
from app.domain.runs.logical_times import logical_of
from app.domain.runs.trace_templates import (
    CHILD_GONE,
    CHILD_INVALID,
    CHILD_TRIGGERED,
    CHILDREN_HEAD,
    CUT,
    fill,
)
from app.domain.runs.trigger_report import RESULT_MAX, clean_text, fit_result
from app.store.fires import queue as fires
from app.store.fires.logs import RunState
from app.store.jobs import scheduling as jobs
from app.store.jobs.of_results import JobOfResult

#: characters of the lines about child jobs: an adopted job may have any number of them
CHILDREN_MAX = 10_000


def known_children(session: Session, parents: Iterable[JobOfResult | None]) -> Collection[int]:
    """Return the children of these jobs that exist; reads nothing if they have none."""
    return jobs.find_names(
        session, {child for job in parents if job for child in valid_children(job.child_jobid, job.id)}
    ).keys()


def result_text(
    handle_code: int, handle_msg: str | None, job: JobOfResult | None, existing_ids: Collection[int]
) -> str | None:
    """Return the executor's text, with lines about child jobs if any; ``existing_ids``: jobs that exist."""
    # One character more, by which a text that is cut is known.
    text = clean_text(handle_msg, RESULT_MAX + 1) if handle_msg is not None else None
    if handle_code != HandleCode.SUCCESS or job is None or not (job.child_jobid or "").strip():
        return fit_result(text) if text is not None else None
    names = (job.child_jobid or "").split(",")
    lines: list[str] = [CHILDREN_HEAD]
    for number, name in enumerate(names, 1):
        child = child_id(name, job.id)
        template = CHILD_TRIGGERED if child in existing_ids else CHILD_GONE
        lines.append(fill(template if child else CHILD_INVALID, n=number, all=len(names), id=name.strip()))
    children = "\n".join(lines)
    if len(children) > CHILDREN_MAX:
        children = f"{children[:CHILDREN_MAX]}\n{CUT}"
    return fit_result(text or "", children)


def child_fires(run: RunState, job: JobOfResult, now_ms: Millis) -> list[fires.NewFire]:
    if not job.child_jobid or run.chain == NONE_FOLLOWS:
        return []
    logical_ms, chain = logical_of(run), run.chain if in_chain(run.chain) else None
    return [
        fires.NewFire(
            f"child:{run.id}:{child}", child, now_ms, TriggerType.PARENT, logical_ms=logical_ms, chain=chain
        )
        for child in valid_children(job.child_jobid, job.id)
    ]
