"""Matching of a document with what is stored: which objects its keys mean, and which of them to adopt."""

from collections.abc import Iterable
from dataclasses import replace

from sqlalchemy.orm import Session

from app.domain.code.document import Document, Members, app_of
from app.services.code.request import CodeRequest
from app.services.code.stored import Stored, find_known, with_jobs, with_places
from app.store.jobs import listing as job_lists
from app.store.jobs.managed import JOB


def find_for_document(
    session: Session, request: CodeRequest, *, lock: bool
) -> tuple[Stored, dict[str, list[int]]]:
    """Return the state that a document is compared with; and key of a job -> ids of jobs to adopt for it.

    ``lock`` keeps the jobs unchanged until the commit.
    """
    document, known = request.document, with_places(session, find_known(session, request.actor))
    known = replace(known, renamed=_renamed_keys(document, known))
    candidates = _candidates(session, request, known) | _renamed(document, known)
    named = {known.managed_key(key) for key in (*document.jobs, *request.prune, *_named_jobs(document))}
    ids = {each.object_id for (kind, key), each in known.managed.items() if kind == JOB and key in named}
    ids.update(job_id for found in candidates.values() for job_id in found)
    return with_jobs(session, known, ids, lock=lock), candidates


def _renamed_keys(document: Document, known: Stored) -> dict[str, str]:
    """Return present key -> key of managed jobs whose group was renamed, where no other job has that one."""
    keys: dict[str, set[str]] = {}
    for job_id, group_id in known.placed.items():
        key = known.keys[JOB, job_id]
        keys.setdefault(key, set()).add(key)
        keys.setdefault(known.present_key(key, group_id), set()).add(key)
    alone = {present: key for present, (key, *others) in keys.items() if not others}
    return {present: key for present, key in alone.items() if present != key and present not in document.jobs}


def _named_jobs(document: Document) -> Iterable[str]:
    """Return the keys of jobs that the document refers to."""
    for members in document.jobs.values():
        yield from members.get("children", ())
    for members in document.channels.values():
        yield from members.get("jobs", ())


def _candidates(session: Session, request: CodeRequest, known: Stored) -> dict[str, list[int]]:
    """Return key -> ids of the unmanaged jobs that its members describe.

    Those with its AppName, description and handler; for a key that is the name of the handler, as of jobs
    declared in code, else those with its AppName and handler. An import, whose keys may be made up, means
    managed jobs as well, and by their description only.
    """
    jobs, app_names = request.document.jobs, {each.id: each.app_name for each in known.groups.values()}
    wanted = {key: each for key, each in jobs.items() if (JOB, key) not in known.managed}
    descriptions = {each["description"] for each in wanted.values() if "description" in each}
    by_handler = {} if request.is_import else wanted
    handlers = {each["handler"] for key, each in by_handler.items() if is_handler_key(key, each)}
    if not descriptions and not handlers:
        return {}
    apps = {app_of(key) for key in wanted}
    ours = {group_id for group_id, app_name in app_names.items() if app_name in apps}
    rows = job_lists.find_named(session, descriptions, handlers, group_ids=ours)
    described: dict[tuple[str, str], list[tuple[int, str]]] = {}
    handled: dict[tuple[str, str], list[int]] = {}
    for job_id, group_id, description, handler in rows:
        key = known.keys.get((JOB, job_id))
        if key is None or (request.is_import and key not in jobs):
            described.setdefault((app_names[group_id], description), []).append((job_id, handler))
            handled.setdefault((app_names[group_id], handler), []).append(job_id)

    def found(key: str, members: Members) -> list[int]:
        app_name, wanted_handler = app_of(key), members.get("handler")
        named = described.get((app_name, members.get("description", "")), ())
        alike = [job_id for job_id, handler in named if wanted_handler in (None, handler)]
        if alike or request.is_import or not is_handler_key(key, members):
            return alike
        others = handled.get((app_name, members["handler"]), [])
        # with a description of its own the job may be a further one of this handler
        return others if len(others) == 1 or "description" not in members else []

    return {key: found(key, members) for key, members in wanted.items()}


def _renamed(document: Document, known: Stored) -> dict[str, list[int]]:
    """Return key -> ids of managed jobs that had it with another AppName until their group got this one."""
    found: dict[str, list[int]] = {}
    for job_id in known.placed:
        former = known.keys[JOB, job_id]
        if former not in document.jobs:
            for key, follower in _chain(document, known, former):
                if follower not in found.setdefault(key, []):
                    found[key].append(follower)
    return found


def _chain(document: Document, known: Stored, former: str) -> list[tuple[str, int]]:
    """Return the keys that jobs get if the one with this ``former`` key gets its present one, with their ids.

    If another job has that key, its group has to have been renamed as well, so that it gets its own present
    one in turn. If the document lacks that one, either job may be meant.
    """
    chain: list[tuple[str, int]] = []
    owner = known.managed.get((JOB, former))
    while owner is not None and owner.object_id in known.placed:
        key = known.present_key(owner.key, known.placed[owner.object_id])
        if key in dict(chain):
            return []
        if key not in document.jobs:
            return [*chain, (owner.key, owner.object_id)] if chain else []
        chain.append((key, owner.object_id))
        owner = known.managed.get((JOB, key))
    return chain


def is_handler_key(key: str, members: Members) -> bool:
    """Whether the key of a job is the name of its handler."""
    return members.get("handler") == key.rpartition("/")[2]
