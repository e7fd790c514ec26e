"""Picker choices: the jobs, groups and users that an actor can choose from, a few at a time."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right, require_admin
from app.domain.enums import GlueType
from app.domain.jobs.parameter_fields import ParameterField, fields_of
from app.models.group import Group
from app.models.job import Job
from app.store.executors import groups, registry
from app.store.pickers import choices as store
from executor_client.wire.handler_names import nearest_name
from executor_client.wire.protocol import from_handlers_header

#: most choices offered at once
OFFERED_MAX = 20
#: most handlers offered, and the newest jobs whose handlers are among them
HANDLERS_MAX, HANDLER_JOBS_MAX = 200, 1_000
#: a header of handlers that is longer may have been cut
LONG_HEADER = 3_000
#: longest select; pages with more choices have a field for the id instead
SELECT_MAX = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """Choice of a picker: the value to send, its text, and the group it belongs to."""

    value: str
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """The first choices that match, and whether there are more."""

    choices: Sequence[Choice]
    has_more: bool


def offer_jobs(
    session: Session, text: str, *, actor: Actor, right: Right, group_id: int = 0, skip_id: int = 0
) -> Offer:
    """Return jobs on which the actor has ``right``, of one group (0: any), without the job ``skip_id``."""
    allowed_ids = actor.group_ids(right)
    rows = store.search_jobs(
        session, text, group_ids=allowed_ids, group_id=group_id, skip_id=skip_id, limit=OFFERED_MAX + 1
    )
    titles = groups.find_groups(session, {row[1] for row in rows})
    places = {group_id: group.title for group_id, group in titles.items()}
    return _offer(
        [
            Choice(str(job_id), f"{job_id} {description}", places.get(group, ""))
            for job_id, group, description in rows
        ]
    )


def offer_groups(session: Session, text: str, *, actor: Actor, right: Right) -> Offer:
    """Return groups on which the actor has ``right``."""
    rows = store.search_groups(session, text, group_ids=actor.group_ids(right), limit=OFFERED_MAX + 1)
    return _offer([Choice(str(group_id), title, app_name) for group_id, title, app_name in rows])


def offer_users(session: Session, text: str, *, actor: Actor) -> Offer:
    """Return users by name; for administrators only."""
    require_admin(actor)
    return _offer([Choice(name, name) for name in store.search_users(session, text, limit=OFFERED_MAX + 1)])


@dataclass(frozen=True, slots=True)
class HandlerOffer:
    """Handlers of a group: of its newest jobs, most used first, then others its executors announce."""

    names: Sequence[str] = ()
    #: the handler, if every executor of the group announces this one alone; else empty
    only: str = ""


def offer_handlers(session: Session, group_id: int, *, actor: Actor) -> HandlerOffer:
    """Return a group's handlers; none if the actor cannot see the group."""
    group = groups.find_groups(session, [group_id]).get(group_id)
    if group is None or not actor.may(group_id, Right.VIEW):
        return HandlerOffer()
    counts = Counter(store.newest_handlers(session, group_id, limit=HANDLER_JOBS_MAX))
    headers = registry.find_handlers(session, group.app_name)
    announced_names = {name for header in headers for name in from_handlers_header(header)}
    names = [*(name for name, _count in counts.most_common()), *sorted(announced_names - set(counts))]
    only = next(iter(announced_names)) if len(announced_names) == 1 and all(headers) else ""
    return HandlerOffer(names[:HANDLERS_MAX], only)


@dataclass(frozen=True, slots=True)
class UnknownHandler:
    """Handler of a job that no executor of its group announces."""

    name: str
    #: the announced name that may be meant; empty if none is close
    near: str


def find_unknown_handler(session: Session, job: Job, group: Group | None) -> UnknownHandler | None:
    """Return a job's handler that its executors do not have; None if they have it, or if that is not known.

    Executors of other projects announce none, and a very long list is cut.
    """
    name = (job.executor_handler or "").strip()
    if group is None or job.glue_type != GlueType.BEAN or not name:
        return None
    headers = registry.find_handlers(session, group.app_name)
    if not headers or not all(0 < len(header) < LONG_HEADER for header in headers):
        return None
    names = sorted({known_name for header in headers for known_name in from_handlers_header(header)})
    return None if name in names else UnknownHandler(name, nearest_name(name, names))


def parameter_fields(session: Session, group_id: int, handler: str) -> tuple[ParameterField, ...]:
    """Return the fields for the parameters of a handler, as the group's executors announced them last."""
    group = groups.find_groups(session, [group_id]).get(group_id)
    text = registry.find_schemas(session, group.app_name) if group is not None and handler else None
    try:
        schemas = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return ()
    return fields_of(schemas.get(handler)) if isinstance(schemas, dict) else ()


def jobs_to_select(session: Session, group_id: int, *, actor: Actor) -> list[Choice] | None:
    """Return all jobs of a group for a select; None if there are too many."""
    rows = store.search_jobs(
        session, "", group_ids=actor.group_ids(Right.VIEW), group_id=group_id, limit=SELECT_MAX + 1
    )
    if len(rows) > SELECT_MAX:
        return None
    return [Choice(str(job_id), f"{job_id} {description}") for job_id, _group_id, description in sorted(rows)]


def name_jobs(session: Session, job_ids: Sequence[int], *, actor: Actor) -> list[Choice]:
    """Return the jobs with their descriptions; a job the actor cannot see has only its id."""
    texts = store.find_job_texts(session, job_ids, group_ids=actor.group_ids(Right.VIEW))
    return [Choice(str(job_id), f"{job_id} {texts.get(job_id, '')}".strip()) for job_id in job_ids]


def _offer(choices: Sequence[Choice]) -> Offer:
    return Offer(choices[:OFFERED_MAX], len(choices) > OFFERED_MAX)
