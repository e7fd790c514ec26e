"""Lists of incidents and promises, with the names of their jobs, of the groups that a user may view."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.enums import IncidentState
from app.domain.promises.judgement import read_days
from app.domain.promises.promise import Promise, find_promise
from app.models.job import Job
from app.models.promise import Incident, IncidentMessage
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.services.promises.incidents import visible_incident
from app.store.base.paging import Page
from app.store.executors import groups as group_store
from app.store.jobs import scheduling as job_store
from app.store.jobs.scheduling import JobName
from app.store.pickers.overview import GroupIds
from app.store.promises import incidents as incident_store
from app.store.promises import listing
from app.store.promises.listing import IncidentFilter, PromiseFilter, PromiseRow

#: rows of a page
SHOWN = 50
_live = AnswerCache[dict[str, int]](LATELY_MS)


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An incident with its job; ``job`` None: it was deleted, or is not visible to the user."""

    incident: Incident
    job: JobName | None


class Incidents(NamedTuple):
    """A page of incidents, and how many have not ended, by state."""

    rows: list[IncidentRow]
    #: id before which the list goes on; None: it ends here
    before_id: int | None
    counts: dict[str, int]


def list_incidents(
    session: Session, criteria: IncidentFilter, *, actor: Actor, before_id: int | None
) -> Incidents:
    """Return a page of incidents, newest first."""
    group_ids = actor.group_ids(Right.VIEW)
    page = listing.list_before(session, criteria, group_ids, before_id=before_id, limit=SHOWN)
    counts = listing.count_live(session, criteria, group_ids)
    return Incidents(with_jobs(session, page.rows, actor), page.before_id, counts)


def with_jobs(session: Session, incidents: Sequence[Incident], actor: Actor) -> list[IncidentRow]:
    """Return incidents with the names of their jobs; a job may have been moved meanwhile."""
    names = job_store.find_names(session, sorted({incident.job_id for incident in incidents}))
    visible = {job_id: name for job_id, name in names.items() if actor.may(name.job_group, Right.VIEW)}
    return [IncidentRow(incident, visible.get(incident.job_id)) for incident in incidents]


def count_open(session: Session, group_ids: GroupIds) -> int:
    """Return how many incidents of groups (None: of any) are open; a few seconds old."""
    counts = _live.get(group_ids, lambda: listing.count_live(session, IncidentFilter(), group_ids))
    return counts.get(IncidentState.OPEN, 0)


def find_open(session: Session, actor: Actor, *, limit: int) -> list[IncidentRow]:
    """Return the newest open incidents."""
    criteria = IncidentFilter([IncidentState.OPEN])
    page = listing.list_before(session, criteria, actor.group_ids(Right.VIEW), before_id=None, limit=limit)
    return with_jobs(session, page.rows, actor)


@dataclass(frozen=True, slots=True)
class IncidentDetail:
    """An incident, its job, and the messages about it in the order of their writing."""

    incident: Incident
    job: JobName | None
    #: title of the executor group that the job had; empty: it was deleted
    group_title: str
    messages: list[IncidentMessage]
    may_operate: bool


def find_detail(session: Session, incident_id: int, *, actor: Actor) -> IncidentDetail:
    """Return an incident that the actor may see; raises NotFound."""
    incident = visible_incident(session, incident_id, actor)
    row = with_jobs(session, [incident], actor)[0]
    group = group_store.find_groups(session, [incident.group_id]).get(incident.group_id)
    return IncidentDetail(
        incident,
        row.job,
        group.title if group is not None else "",
        incident_store.messages_of(session, [incident.id]),
        actor.may(incident.group_id, Right.OPERATE),
    )


class Verdicts(NamedTuple):
    """How often a promise was kept, broken and excused."""

    kept: int = 0
    broken: int = 0
    excused: int = 0

    @property
    def share(self) -> float | None:
        """Part of the verdicts that were kept, excused ones apart; None: there is none."""
        return self.kept / (self.kept + self.broken) if self.kept + self.broken else None


def verdicts_of(days: Iterable[str | None]) -> Verdicts:
    """Return the sum of the stored days of promises."""
    good = broken = excuses = 0
    for text in days:
        for of_day in read_days(text).values():
            good, broken, excuses = good + of_day[0], broken + of_day[1], excuses + of_day[2]
    return Verdicts(good, broken, excuses)


@dataclass(frozen=True, slots=True)
class ListedPromise:
    """A promise with its verdicts of the last days."""

    row: PromiseRow
    promise: Promise
    verdicts: Verdicts


def count_promises(session: Session, criteria: PromiseFilter, *, actor: Actor) -> dict[str, int]:
    """Return state -> number of promises, whatever state the filter has."""
    return listing.count_promises(session, criteria, actor.group_ids(Right.VIEW))


def list_promises(
    session: Session,
    criteria: PromiseFilter,
    counts: Mapping[str, int],
    *,
    actor: Actor,
    start: int = 0,
    length: int = SHOWN,
) -> Page[ListedPromise]:
    """Return a page of promises, broken ones first; ``counts`` has the numbers of all by state."""
    total = counts.get(criteria.state, 0) if criteria.state else sum(counts.values())
    if not total:
        return Page([], 0)
    rows = listing.list_promises(session, criteria, actor.group_ids(Right.VIEW), start=start, length=length)
    return Page(_to_listed(rows), total)


def _to_listed(rows: Iterable[PromiseRow]) -> list[ListedPromise]:
    """Return the rows with their promises, without what another program has stored."""
    promises = ((row, find_promise(row.definition)) for row in rows)
    return [
        ListedPromise(row, promise, verdicts_of([row.days]))
        for row, promise in promises
        if promise is not None
    ]


def has_promises(session: Session, actor: Actor) -> bool:
    """Whether a job that the actor may see has a promise."""
    return bool(
        listing.list_promises(session, PromiseFilter(), actor.group_ids(Right.VIEW), start=0, length=1)
    )


class JobSummary(NamedTuple):
    """The promises that hold for a job, and its incidents that have not ended."""

    promises: list[ListedPromise]
    open: int
    acknowledged: int

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts on all promises."""
        return verdicts_of(promise.row.days for promise in self.promises)


def find_summary(session: Session, job: Job, *, actor: Actor) -> JobSummary:
    """Return the promises that hold for a job, ten at most, and its live incidents."""
    group_ids = actor.group_ids(Right.VIEW)
    rows = listing.list_promises(session, PromiseFilter(job_id=job.id), group_ids, start=0, length=SHOWN)
    live = listing.count_live(session, IncidentFilter(job_id=job.id), group_ids)
    numbers = (live.get(state, 0) for state in (IncidentState.OPEN, IncidentState.ACKNOWLEDGED))
    return JobSummary(_to_listed(rows), *numbers)
