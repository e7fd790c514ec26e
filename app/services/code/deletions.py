"""Plans of what ``prune`` names: the managed objects to delete."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.code.document import ALARM_CHANNELS, CHANNELS, GROUPS, JOBS, Document, app_of, place
from app.domain.code.plan import Action, ObjectPlan
from app.domain.jobs.members import CHILDREN
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, folded
from app.errors import Conflict, InvalidInput, PermissionDenied
from app.services.code.stored import Stored, comparable
from app.store.jobs import listing as job_lists
from app.store.jobs.managed import CHANNEL, GROUP, JOB, ManagedObject
from app.store.runs import clearing as log_clearing

PRUNE = "prune"
#: runs of the jobs to delete: they are deleted in the one transaction, and no schedule is scanned meanwhile
DELETED_RUNS_MAX = 50_000


def plan_deletions(
    document: Document, prune: Sequence[str], stored: Stored, errors: InputErrors, *, actor: Actor
) -> list[ObjectPlan]:
    """Return the plans of the objects to delete; one that is gone, or kept, is forgotten only."""
    named = {(JOB, key) for key in document.jobs}
    named |= {(GROUP, key) for key in document.groups}
    named |= {(CHANNEL, key) for key in document.channels}
    names, found = names_in(document), []
    for pruned in dict.fromkeys(prune):
        kind, key = split_pruned(pruned)
        with errors:
            if (kind, key) in named:
                raise InvalidInput(PRUNE, N_("%(key)s is in the files; remove it there first", key=pruned))
            existing = stored.managed_object(kind, key)
            if (kind, key) not in stored.managed or not _is_visible(actor, stored, existing):
                raise InvalidInput(PRUNE, N_("%(key)s is not managed as code", key=pruned))
            _require_deletion(actor, stored, kind, existing.object_id if existing else 0)
            if is_kept(names, stored, kind, key):
                found.append(_kept(kind, key, stored.present_name(kind, key)))
            else:
                found.append(ObjectPlan(kind, key, Action.DELETE, existing.object_id if existing else 0))
    return found


def pruned_keys(prune: Sequence[str], stored: Stored) -> list[str]:
    """Return what to delete, with the managed keys of jobs in place of their present ones."""
    return [each if (JOB, each) in stored.managed else stored.managed_key(each) for each in prune]


def keep_jobs(deletions: Sequence[ObjectPlan], planned: Mapping[int, str]) -> list[ObjectPlan]:
    """Return the plans of deletions, with those of jobs that are ``planned`` under another key: id -> key."""
    return [
        _kept(JOB, each.key, planned[each.object_id])
        if each.kind == JOB and each.object_id in planned
        else each
        for each in deletions
    ]


def _kept(kind: str, key: str, name: str) -> ObjectPlan:
    return ObjectPlan(kind, key, Action.DELETE, notes=(f"it stays: the files have it as {name}",))


def names_in(document: Document) -> set[tuple[str, str]]:
    """Return kind and name of the groups and channels of a document, as they are compared."""
    sections = ((GROUP, document.groups), (CHANNEL, document.channels))
    return {(kind, comparable(kind, name)) for kind, section in sections for name in section}


def is_kept(names: Collection[tuple[str, str]], stored: Stored, kind: str, key: str) -> bool:
    """Whether the ``names`` of a document have a managed object, which then takes it over from this key."""
    existing = stored.managed_object(kind, key)
    return existing is not None and (kind, comparable(kind, stored.present_name(kind, key))) in names


def check_references(document: Document, prune: Collection[str], stored: Stored, errors: InputErrors) -> None:
    """Add an error for each member of a document that names an object to delete."""
    names, deleted = names_in(document), {}
    for pruned in prune:
        kind, key = split_pruned(pruned)
        if not is_kept(names, stored, kind, key):
            present = comparable(kind, stored.present_name(kind, key))
            deleted[kind, present] = pruned, stored.renamed_to(kind, key)
    for where, kind, key in _references(document) if deleted else ():
        with errors:
            own_key = stored.managed_key(key) if kind == JOB else comparable(kind, key)
            pruned, name = deleted.get((kind, own_key), ("", ""))
            if pruned and kind == JOB and own_key != key:
                name = key
            if name:
                problem = N_(
                    "%(key)s, now %(name)s, is to be deleted: remove it here first", key=pruned, name=name
                )
                raise InvalidInput(where, problem)
            if pruned:
                raise InvalidInput(where, N_("%(key)s is to be deleted: remove it here first", key=pruned))


def _references(document: Document) -> Iterator[tuple[str, str, str]]:
    """Yield what a document refers to: the place, and kind and key of the object."""
    for key, members in document.jobs.items():
        yield place(JOBS, key), GROUP, app_of(key)
        for name, kind in ((CHILDREN, JOB), (ALARM_CHANNELS, CHANNEL)):
            yield from ((place(JOBS, key, name), kind, named) for named in members.get(name, ()))
    for key, members in document.channels.items():
        for name, kind in ((GROUPS, GROUP), (JOBS, JOB)):
            yield from ((place(CHANNELS, key, name), kind, named) for named in members.get(name, ()))


def deleted_channels(deletions: Sequence[ObjectPlan], stored: Stored) -> set[str]:
    """Return the folded present names of the channels to delete."""
    return {folded(stored.name_of(CHANNEL, each.object_id)) for each in deletions if each.kind == CHANNEL}


def check_groups(
    session: Session, deletions: Sequence[ObjectPlan], stored: Stored, planned: Collection[int], *, added: int
) -> None:
    """Raise InvalidInput with the groups to delete that keep jobs, or if none would remain.

    ``planned`` are the ids of jobs in the document, whose groups stay; ``added`` is the number of new groups.
    """
    deleted = {each.object_id: each.key for each in deletions if each.kind == GROUP and each.object_id}
    leaving = {each.object_id for each in deletions if each.kind == JOB}.union(planned)
    counts = Counter(job_lists.count_by_group(session, deleted) if deleted else {})
    counts.subtract(job.job_group for job_id, job in stored.jobs.items() if job_id in leaving)
    errors = InputErrors()
    for group_id, app_name in deleted.items():
        with errors:
            if counts[group_id] > 0:
                key = f"{GROUP}:{app_name}"
                raise InvalidInput(PRUNE, N_("%(key)s still has jobs: delete or move them first", key=key))
    with errors:
        if deleted and len(deleted) == len(stored.groups) + added:
            raise InvalidInput(PRUNE, N_("At least one executor group must remain"))
    errors.raise_all()


def _is_visible(actor: Actor, stored: Stored, existing: ManagedObject | None) -> bool:
    """Whether an actor may see a managed object; only administrators see channels, and what is gone."""
    if actor.is_admin or existing is None or existing.kind == CHANNEL:
        return actor.is_admin
    job = stored.jobs[existing.object_id] if existing.kind == JOB else None
    return actor.may(job.job_group if job is not None else existing.object_id, Right.VIEW)


def split_pruned(pruned: str) -> tuple[str, str]:
    """Return kind and key of an object to delete, ``sample/close`` or ``channel:Ops``."""
    kind, colon, key = pruned.partition(":")
    return (kind, key) if colon and kind in {GROUP, CHANNEL} else (JOB, pruned)


def _require_deletion(actor: Actor, stored: Stored, kind: str, object_id: int) -> None:
    if kind == JOB:
        job = stored.jobs.get(object_id)
        is_allowed = actor.is_admin if job is None else actor.may(job.job_group, Right.EDIT)
    else:
        is_allowed = actor.is_admin
    if not is_allowed:
        raise PermissionDenied(f"{PRUNE}: no permission to delete this {kind}")


def check_runs(session: Session, deletions: Sequence[ObjectPlan]) -> None:
    """Raise Conflict if deleting the runs of these jobs would hold up everything else for too long."""
    job_ids = [each.object_id for each in deletions if each.kind == JOB and each.object_id]
    if job_ids and log_clearing.has_more_runs(session, job_ids, DELETED_RUNS_MAX):
        raise Conflict(
            N_(
                "The jobs to delete have more than %(limit)s runs; delete them in the console first",
                limit=DELETED_RUNS_MAX,
            )
        )
