"""Export of completeness: the numbers of a period by job; ids are read at once, numbers in pages."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.services.completeness.overview import Days, add_rest, rest_by_job, rest_of, stored_scope
from app.services.completeness.report import Scope
from app.store.completeness import totals as store
from app.store.completeness.totals import JobSum


class Export(NamedTuple):
    """What is exported: jobs by id, their stored days, and what is not stored yet by job."""

    job_ids: Sequence[int]
    scope: store.Scope
    rest: Mapping[int, JobSum]
    #: up to when instants are counted
    until_ms: Millis


def find_export(session: Session, scope: Scope, period: Days, *, zone: ZoneInfo, now_ms: Millis) -> Export:
    """Return what the pages of an export need."""
    rest, _first_ms = rest_of(session, scope, period, zone=zone, now_ms=now_ms)
    of_days, by_job = stored_scope(scope, period), rest_by_job(rest.tallies)
    job_ids = {*store.find_job_ids(session, of_days), *by_job}
    return Export(sorted(job_ids), of_days, by_job, rest.until_ms)


def page_of_export(session: Session, export: Export, job_ids: Sequence[int]) -> list[JobSum]:
    """Return the numbers of some of the jobs, by id."""
    jobs = store.sum_jobs(session, export.scope, job_ids)
    store.add_reasons(session, export.scope, jobs)
    return sorted(add_rest(jobs, export.rest, job_ids), key=lambda job: job.job_id)
