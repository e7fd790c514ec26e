"""Export of completeness: the numbers of a period by job, read in pages by job id."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.completeness.equation import Tally
from app.services.completeness.overview import Days, rest_by_job, rest_of, stored_scope
from app.services.completeness.report import Scope
from app.store.completeness import totals as store
from app.store.completeness.totals import JobSum


class Export(NamedTuple):
    """What is exported: stored days, and what is not stored yet by job."""

    stored: store.Scope
    rest: Mapping[int, JobSum]
    #: up to when instants are counted
    until_ms: Millis


def find_export(session: Session, scope: Scope, period: Days, *, zone: ZoneInfo, now_ms: Millis) -> Export:
    """Return what the pages of an export need."""
    rest, _first_ms = rest_of(session, scope, period, zone=zone, now_ms=now_ms)
    return Export(stored_scope(scope, period), rest_by_job(rest.tallies), rest.until_ms)


def page_of_export(session: Session, export: Export, *, after_id: int, limit: int) -> list[JobSum]:
    """Return the next jobs after one by id, with at least one if there are any left."""
    jobs = store.page_of_jobs(session, export.stored, after_id=after_id, limit=limit)
    store.add_reasons(session, export.stored, jobs)
    last_id = jobs[-1].job_id if len(jobs) == limit else None
    rest = {
        job_id: job
        for job_id, job in export.rest.items()
        if job_id > after_id and (last_id is None or job_id <= last_id)
    }
    return sorted(_added(jobs, rest), key=lambda job: job.job_id)


def _added(jobs: list[JobSum], rest: Mapping[int, JobSum]) -> Iterator[JobSum]:
    present = set()
    for job in jobs:
        present.add(job.job_id)
        if job.job_id in rest:
            total = Tally()
            total.add(job.tally)
            total.add(rest[job.job_id].tally)
            yield job._replace(tally=total)
        else:
            yield job
    yield from (job for job_id, job in rest.items() if job_id not in present)
