"""Triggers: runs that users and programs ask for."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import ParamForm
from app.domain.runs.logical_times import chosen_logical
from app.domain.runs.trigger_keys import Trigger
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.pipeline.retries import NO_SLOT
from app.runtime.logging import request_id
from app.services.auditing import audit
from app.services.calendars.by_hand import require_no_blackout
from app.services.jobs.job_list import MISSING
from app.services.jobs.placeholders import check_run_param
from app.services.jobs.run_addresses import check_addresses
from app.services.limits.forced_runs import forced_slot
from app.services.rounds.chains import open_chain
from app.store.base import locks
from app.store.fires import queue as fires
from app.store.fires import triggered_fires as planned_fires

#: how far ahead a run can be planned
AHEAD_DAYS = 366
#: planned runs of one job
PLANNED_MAX = 1_000


class QueuedRun(NamedTuple):
    """A run that was just queued."""

    #: leads to the run
    trigger: Trigger
    group_id: int
    #: what it stands for
    logical_ms: Millis
    #: number of the trigger that asked for the chain
    chain: int | None = None
    round_id: int | None = None


class InChain(NamedTuple):
    """Chain, round and shard of a run by hand."""

    #: all that follows the job belongs to the run
    opens: bool = False
    #: those of the run that is repeated
    chain: int | None = None
    round_id: int | None = None
    shard: str | None = None
    #: a Java admin uses the database, too (XXL_JOB_SHARED_WITH_JAVA)
    shared_with_java: bool = False

    @property
    def columns(self) -> dict[str, Any]:
        """What the fire gets of it."""
        return {
            "chain": self.chain,
            "round_id": self.round_id,
            "sharding_param": self.shard,
            "opens_chain": self.opens,
        }


ALONE = InChain()


def trigger_job(
    session: Session,
    job_id: int,
    *,
    executor_param: str | None,
    address_list: str | None,
    actor: Actor,
    now_ms: Millis,
    due_ms: Millis | None = None,
    repeats: int | None = None,
    logical_ms: Millis | None = None,
    former_logical_ms: Millis | None = None,
    param_form: ParamForm = ParamForm.TEMPLATE,
    force: bool = False,
    in_chain: InChain = ALONE,
) -> QueuedRun:
    """Queue one run, due now or at ``due_ms``.

    ``executor_param`` None: the job's own; ``address_list`` empty: the addresses of the group. ``repeats`` is
    the log id of a run of this job, visible to the actor, whose checkpoint the new run gets. ``logical_ms``
    is a logical time that is given; without one ``former_logical_ms`` counts, of a run that is run again.
    ``param_form``: placeholders of a template are filled in if the job does that; ``force``: neither a limit
    nor a blackout counts. Raises Conflict while a blackout is on, unless the run is forced or planned.
    """
    group_id = check_group(locks.lock_group_of(session, job_id), actor)
    errors, addresses, start_ms, run_logical_ms = InputErrors(), None, due_ms or now_ms, now_ms
    with errors:
        check_run_param(session, job_id, group_id, executor_param or "", param_form)
    with errors:
        addresses = check_addresses(session, group_id, address_list or "", now_ms)
    with errors:
        check_plan(session, job_id, due_ms, now_ms=now_ms, force=force)
    with errors:
        run_logical_ms = chosen_logical(logical_ms, former_logical_ms, due_ms=start_ms, now_ms=now_ms)
    errors.raise_all()
    if due_ms is None and not force:
        require_no_blackout(session, job_id, group_id, now_ms)
    slot = forced_slot(session, job_id, executor_param, now_ms) if force else NO_SLOT
    inputs = {"executor_param": executor_param, "address_list": addresses}
    columns: dict[str, Any] = {**inputs, "repeats": repeats, "request": request_id.get()}
    columns |= {"logical_ms": run_logical_ms, "param_form": param_form}
    columns |= {**slot._asdict(), **in_chain.columns}
    trigger = fires.insert_manual(session, job_id, due_ms=start_ms, is_planned=due_ms is not None, **columns)
    if in_chain.opens:
        open_chain(session, trigger, run_logical_ms, actor=actor, shared_with_java=in_chain.shared_with_java)
    options = {"due_ms": due_ms, "logical_ms": logical_ms, "force": force, "chain": in_chain.opens}
    changes = inputs | _given_fields(options)
    audit.record(session, "job.trigger", actor=actor, now_ms=now_ms, target=("job", job_id), changes=changes)
    chain = trigger.number if in_chain.opens else in_chain.chain
    return QueuedRun(trigger, group_id, run_logical_ms, chain, in_chain.round_id)


def _given_fields(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the options of a trigger that its audit names."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def check_plan(
    session: Session, job_id: int, due_ms: Millis | None, *, now_ms: Millis, force: bool = False
) -> None:
    """Raise InvalidInput for an instant that cannot be planned, Conflict if the job has too many planned.

    A run that was forced would have its slots from now on. ``due_ms`` None: it is due now.
    """
    if due_ms is None:
        return
    if force:
        raise InvalidInput(
            "force", N_("Only a run that is due now can be forced; leave out force or the time")
        )
    if not now_ms < due_ms <= now_ms + AHEAD_DAYS * DAY_MS:
        raise InvalidInput("at", N_("The run must be due in the next %(days)s days", days=AHEAD_DAYS))
    if planned_fires.count_ahead(session, job_id, now_ms=now_ms) >= PLANNED_MAX:
        raise Conflict(
            N_("This job has %(n)s planned runs already; withdraw some of them first", n=PLANNED_MAX)
        )


def check_group(group_id: int | None, actor: Actor) -> int:
    """Check the right to run the jobs of a group (None: there is no such job), and return the group."""
    if group_id is None:
        raise NotFound(MISSING)
    require_right(actor, group_id, Right.OPERATE, missing=MISSING)
    return group_id
