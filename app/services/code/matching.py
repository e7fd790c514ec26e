"""Matching of a document with stored objects: the object of each key, and the jobs to adopt."""

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy.orm import Session

from app.domain.code.document import Document, Members, app_of
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs
from app.services.code.request import CodeRequest
from app.services.code.state import State, find_state, with_jobs, with_places
from app.store.jobs import listing as job_lists
from app.store.jobs.managed_objects import JOB


def find_for_document(
    session: Session, request: CodeRequest, *, lock: bool
) -> tuple[State, dict[str, list[int]]]:
    """Return the state that a document is compared with; and key of a job -> ids of jobs to adopt for it.

    ``lock`` keeps the jobs unchanged until the commit.
    """
    document, state = request.document, with_places(session, find_state(session, request.actor))
    state = replace(state, renamed_keys=_renamed_keys(document, state))
    candidates = _candidates(session, request, state) | _followers(document, state)
    keys = {state.managed_key(key) for key in (*document.jobs, *request.prune, *_named_jobs(document))}
    ids = {
        owner.object_id for (kind, key), owner in state.managed_by_key.items() if kind == JOB and key in keys
    }
    ids.update(job_id for job_ids in candidates.values() for job_id in job_ids)
    return with_jobs(session, state, ids, lock=lock), candidates


def _renamed_keys(document: Document, state: State) -> dict[str, str]:
    """Return present key -> key of managed jobs whose group was renamed, where no other job has that one."""
    keys: dict[str, set[str]] = {}
    for job_id, group_id in state.group_id_by_job.items():
        key = state.keys[JOB, job_id]
        keys.setdefault(key, set()).add(key)
        keys.setdefault(state.present_key(key, group_id), set()).add(key)
    alone = {present: key for present, (key, *other_keys) in keys.items() if not other_keys}
    return {present: key for present, key in alone.items() if present != key and present not in document.jobs}


def _named_jobs(document: Document) -> Iterable[str]:
    """Return the keys of jobs that the document refers to."""
    for members in document.jobs.values():
        yield from members.get("children", ())
        yield from named_jobs(members.get(RUNS_AFTER))
    for members in document.channels.values():
        yield from members.get("jobs", ())


def _candidates(session: Session, request: CodeRequest, state: State) -> dict[str, list[int]]:
    """Return key -> ids of the unmanaged jobs that its members describe.

    Those with its AppName, description and handler; for a key that is the name of the handler, as of jobs
    declared in code, else those with its AppName and handler. An import, whose keys may be made up, means
    managed jobs as well, and by their description only.
    """
    document, by_description_only = request.document, request.is_import
    app_names = {group_id: group.app_name for group_id, group in state.groups.items()}
    free_jobs = {
        key: members for key, members in document.jobs.items() if (JOB, key) not in state.managed_by_key
    }
    descriptions = {members["description"] for members in free_jobs.values() if "description" in members}
    handlers = {members["handler"] for key, members in free_jobs.items() if is_handler_key(key, members)}
    handlers = set() if by_description_only else handlers
    if not descriptions and not handlers:
        return {}
    apps = {app_of(key) for key in free_jobs}
    ours = {group_id for group_id, app_name in app_names.items() if app_name in apps}
    rows = job_lists.find_named(session, descriptions, handlers, group_ids=ours)
    by_description: dict[tuple[str, str], list[tuple[int, str]]] = {}
    by_handler: dict[tuple[str, str], list[int]] = {}
    for job_id, group_id, description, handler in rows:
        key = state.keys.get((JOB, job_id))
        if key is None or (request.is_import and key not in document.jobs):
            by_description.setdefault((app_names[group_id], description), []).append((job_id, handler))
            by_handler.setdefault((app_names[group_id], handler), []).append(job_id)

    def find_candidates(key: str, members: Members) -> list[int]:
        app_name, wanted_handler = app_of(key), members.get("handler")
        rows = by_description.get((app_name, members.get("description", "")), ())
        alike = [job_id for job_id, handler in rows if wanted_handler in (None, handler)]
        if alike or by_description_only or not is_handler_key(key, members):
            return alike
        job_ids = by_handler.get((app_name, members["handler"]), [])
        # with a description of its own the job may be a further one of this handler
        return job_ids if len(job_ids) == 1 or "description" not in members else []

    return {key: find_candidates(key, members) for key, members in free_jobs.items()}


def _followers(document: Document, state: State) -> dict[str, list[int]]:
    """Return key -> ids of managed jobs that had it with another AppName until their group got this one."""
    job_ids: dict[str, list[int]] = {}
    for job_id in state.group_id_by_job:
        former = state.keys[JOB, job_id]
        if former not in document.jobs:
            for key, follower in _chain(document, state, former):
                if follower not in job_ids.setdefault(key, []):
                    job_ids[key].append(follower)
    return job_ids


def _chain(document: Document, state: State, former: str) -> list[tuple[str, int]]:
    """Return the keys that jobs get if the one with this ``former`` key gets its present one, with their ids.

    If another job has that key, its group has to have been renamed as well, so that it gets its own present
    one in turn. If the document lacks that one, either job may be meant.
    """
    chain: list[tuple[str, int]] = []
    owner = state.managed_by_key.get((JOB, former))
    while owner is not None and owner.object_id in state.group_id_by_job:
        key = state.present_key(owner.key, state.group_id_by_job[owner.object_id])
        if key in dict(chain):
            return []
        if key not in document.jobs:
            return [*chain, (owner.key, owner.object_id)] if chain else []
        chain.append((key, owner.object_id))
        owner = state.managed_by_key.get((JOB, key))
    return chain


def is_handler_key(key: str, members: Members) -> bool:
    """Whether the key of a job is the name of its handler."""
    return members.get("handler") == key.rpartition("/")[2]
