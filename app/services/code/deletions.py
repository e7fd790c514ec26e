"""Plans of deletions: the managed objects that ``prune`` names."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.code.document import ALARM_CHANNELS, CHANNELS, GROUPS, JOBS, Document, app_of, place
from app.domain.code.plan import Action, ObjectPlan
from app.domain.jobs.members import CHILDREN
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, fold
from app.errors import Conflict, InvalidInput, PermissionDenied
from app.services.code.state import State, comparable
from app.store.jobs import listing as job_lists
from app.store.jobs.managed_objects import CALENDAR, CHANNEL, GROUP, JOB, ManagedObject
from app.store.runs import clearing as log_clearing

PRUNE = "prune"
#: most runs of the jobs to delete: one transaction deletes them, and no schedule is scanned meanwhile
DELETED_RUNS_MAX = 50_000


def plan_deletions(
    document: Document, prune: Sequence[str], state: State, errors: InputErrors, *, actor: Actor
) -> list[ObjectPlan]:
    """Return the plans of the objects to delete; one that is gone, or kept, is forgotten only."""
    document_keys = {(JOB, key) for key in document.jobs}
    document_keys |= {(GROUP, key) for key in document.groups}
    document_keys |= {(CHANNEL, key) for key in document.channels}
    document_keys |= {(CALENDAR, key) for key in document.calendars}
    names, plans = names_in(document), []
    for prune_key in dict.fromkeys(prune):
        kind, key = split_prune_key(prune_key)
        with errors:
            if (kind, key) in document_keys:
                raise InvalidInput(PRUNE, N_("%(key)s is in the files; remove it there first", key=prune_key))
            owner = state.managed_object(kind, key)
            if (kind, key) not in state.managed_by_key or not _is_visible(actor, state, owner):
                raise InvalidInput(PRUNE, N_("%(key)s is not managed as code", key=prune_key))
            _require_deletion(actor, state, kind, owner.object_id if owner else 0)
            if is_kept(names, state, kind, key):
                plans.append(_takeover(kind, key, state.present_name(kind, key)))
            else:
                plans.append(ObjectPlan(kind, key, Action.DELETE, owner.object_id if owner else 0))
    return plans


def pruned_keys(prune: Sequence[str], state: State) -> list[str]:
    """Return what to delete, with the managed keys of jobs in place of their present ones."""
    return [key if (JOB, key) in state.managed_by_key else state.managed_key(key) for key in prune]


def keep_jobs(deletions: Sequence[ObjectPlan], key_by_job: Mapping[int, str]) -> list[ObjectPlan]:
    """Return the plans of deletions, with those of jobs that get another key (``key_by_job``)."""
    return [
        _takeover(JOB, plan.key, key_by_job[plan.object_id])
        if plan.kind == JOB and plan.object_id in key_by_job
        else plan
        for plan in deletions
    ]


def _takeover(kind: str, key: str, name: str) -> ObjectPlan:
    return ObjectPlan(kind, key, Action.DELETE, notes=(f"it stays: the files have it as {name}",))


def names_in(document: Document) -> set[tuple[str, str]]:
    """Return kind and name of all but the jobs of a document, as they are compared."""
    sections = ((GROUP, document.groups), (CHANNEL, document.channels), (CALENDAR, document.calendars))
    return {(kind, comparable(kind, name)) for kind, section in sections for name in section}


def is_kept(names: Collection[tuple[str, str]], state: State, kind: str, key: str) -> bool:
    """Whether the ``names`` of a document have a managed object, which then takes it over from this key."""
    owner = state.managed_object(kind, key)
    return owner is not None and (kind, comparable(kind, state.present_name(kind, key))) in names


def check_references(document: Document, prune: Collection[str], state: State, errors: InputErrors) -> None:
    """Add an error for each member of a document that names an object to delete."""
    names, deletions = names_in(document), {}
    for prune_key in prune:
        kind, key = split_prune_key(prune_key)
        if not is_kept(names, state, kind, key):
            present = comparable(kind, state.present_name(kind, key))
            deletions[kind, present] = prune_key, state.renamed_to(kind, key)
    for where, kind, key in _references(document) if deletions else ():
        with errors:
            own_key = state.managed_key(key) if kind == JOB else comparable(kind, key)
            prune_key, name = deletions.get((kind, own_key), ("", ""))
            if prune_key and kind == JOB and own_key != key:
                name = key
            if name:
                problem = N_(
                    "%(key)s, now %(name)s, is to be deleted: remove it here first", key=prune_key, name=name
                )
                raise InvalidInput(where, problem)
            if prune_key:
                raise InvalidInput(where, N_("%(key)s is to be deleted: remove it here first", key=prune_key))


def _references(document: Document) -> Iterator[tuple[str, str, str]]:
    """Yield what a document refers to: the place, and kind and key of the object."""
    for key, members in document.jobs.items():
        yield place(JOBS, key), GROUP, app_of(key)
        for name, kind in ((CHILDREN, JOB), (ALARM_CHANNELS, CHANNEL)):
            yield from ((place(JOBS, key, name), kind, target) for target in members.get(name, ()))
        if members.get(CALENDAR):
            yield place(JOBS, key, CALENDAR), CALENDAR, members[CALENDAR]["name"]
        where = place(JOBS, key, RUNS_AFTER)
        yield from ((where, JOB, target) for target in named_jobs(members.get(RUNS_AFTER)))
    for key, members in document.channels.items():
        for name, kind in ((GROUPS, GROUP), (JOBS, JOB)):
            yield from ((place(CHANNELS, key, name), kind, target) for target in members.get(name, ()))


def deleted_channels(deletions: Sequence[ObjectPlan], state: State) -> set[str]:
    """Return the folded present names of the channels to delete."""
    return {fold(state.name_of(CHANNEL, plan.object_id)) for plan in deletions if plan.kind == CHANNEL}


def check_groups(
    session: Session, plans: Sequence[ObjectPlan], state: State, job_ids: Collection[int], *, new_groups: int
) -> None:
    """Raise InvalidInput with the groups to delete that keep jobs, or if none would remain.

    ``job_ids`` are the jobs in the document, whose groups stay.
    """
    app_names = {plan.object_id: plan.key for plan in plans if plan.kind == GROUP and plan.object_id}
    leaving_ids = {plan.object_id for plan in plans if plan.kind == JOB}.union(job_ids)
    counts = Counter(job_lists.count_by_group(session, app_names) if app_names else {})
    counts.subtract(job.job_group for job_id, job in state.jobs.items() if job_id in leaving_ids)
    errors = InputErrors()
    for group_id, app_name in app_names.items():
        with errors:
            if counts[group_id] > 0:
                key = f"{GROUP}:{app_name}"
                raise InvalidInput(PRUNE, N_("%(key)s still has jobs: delete or move them first", key=key))
    with errors:
        if app_names and len(app_names) == len(state.groups) + new_groups:
            raise InvalidInput(PRUNE, N_("At least one executor group must remain"))
    errors.raise_all()


def _is_visible(actor: Actor, state: State, owner: ManagedObject | None) -> bool:
    """Whether an actor may see a managed object; channels, calendars and what is gone: administrators."""
    if actor.is_admin or owner is None or owner.kind in {CHANNEL, CALENDAR}:
        return actor.is_admin
    job = state.jobs[owner.object_id] if owner.kind == JOB else None
    return actor.may(job.job_group if job is not None else owner.object_id, Right.VIEW)


def split_prune_key(prune_key: str) -> tuple[str, str]:
    """Return kind and key of an object to delete, ``sample/close`` or ``channel:Ops``."""
    kind, colon, key = prune_key.partition(":")
    return (kind, key) if colon and kind in {GROUP, CHANNEL, CALENDAR} else (JOB, prune_key)


def _require_deletion(actor: Actor, state: State, kind: str, object_id: int) -> None:
    if kind == JOB:
        job = state.jobs.get(object_id)
        is_allowed = actor.is_admin if job is None else actor.may(job.job_group, Right.EDIT)
    else:
        is_allowed = actor.is_admin
    if not is_allowed:
        raise PermissionDenied(f"{PRUNE}: no permission to delete this {kind}")


def check_runs(session: Session, deletions: Sequence[ObjectPlan]) -> None:
    """Raise Conflict if deleting the runs of these jobs would hold up everything else for too long."""
    job_ids = [plan.object_id for plan in deletions if plan.kind == JOB and plan.object_id]
    if job_ids and log_clearing.has_more_runs(session, job_ids, DELETED_RUNS_MAX):
        raise Conflict(
            N_(
                "The jobs to delete have more than %(limit)s runs; delete them in the console first",
                limit=DELETED_RUNS_MAX,
            )
        )
