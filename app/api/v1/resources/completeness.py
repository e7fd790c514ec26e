"""API: completeness of schedules."""

from datetime import date, timedelta
from zoneinfo import ZoneInfo

from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.completeness import (
    CompletenessOut,
    CompletenessQuery,
    JobTallyOut,
    VerifyOut,
    VerifyQuery,
)
from app.clock import DAY_MS, Millis
from app.domain.completeness.days import day_of, start_of
from app.domain.completeness.expected_instants import Interval
from app.errors import InvalidInput
from app.services.completeness.report import JobTally, report, scope_of
from app.services.completeness.verification import verify_day

#: longest interval of a report, in days
DAYS_MAX = 366
#: jobs of an answer
JOBS_MAX = 1_000
resource = Resource("completeness", "Whether everything ran that was due.")


@resource.get("/report/completeness", answer=CompletenessOut, query=CompletenessQuery)
def get_completeness(call: Call) -> CompletenessOut:
    """Return what became of the expected instants of an interval."""
    zone, query = ZoneInfo(call.config.time_zone), call.query
    scope = scope_of(call.actor, group_id=query.group_id, job_id=query.job_id)
    interval = _interval_of(query, zone, call.now_ms)
    result = report(call.session, scope, interval, zone=zone, now_ms=call.now_ms)
    return CompletenessOut(
        from_at=interval.from_ms,
        to_at=interval.until_ms,
        time_zone=call.config.time_zone,
        jobs=[_job(job) for job in result.jobs[:JOBS_MAX]],
        jobs_left_out=max(0, len(result.jobs) - JOBS_MAX),
        **result.total.as_dict(),
    )


@resource.get("/report/completeness/verification", answer=VerifyOut, query=VerifyQuery)
def verify(call: Call) -> VerifyOut:
    """Check the seal of a day, and count its instants anew; takes a while for many runs."""
    zone, day = ZoneInfo(call.config.time_zone), call.query.day
    scope = scope_of(call.actor, job_id=call.query.job_id)
    result = verify_day(call.session, scope, day, zone=zone, now_ms=call.now_ms)
    return VerifyOut(day=day, **result._asdict())


def _interval_of(query: CompletenessQuery, zone: ZoneInfo, now_ms: Millis) -> Interval:
    """Return the interval of a query. Raises InvalidInput."""
    from_ms, to_ms = query.from_, query.to
    if from_ms is None:
        from_ms = day_of(now_ms, zone)
    if isinstance(from_ms, date):
        from_ms = start_of(from_ms, zone)
    if isinstance(to_ms, date):
        to_ms = start_of(to_ms + timedelta(days=1), zone)
    until_ms = now_ms if to_ms is None else to_ms
    if from_ms > until_ms or (from_ms == until_ms and query.to is not None):
        raise InvalidInput("from", "must not be after `to`")
    if until_ms - from_ms > DAYS_MAX * DAY_MS:
        raise InvalidInput("from", f"at most {DAYS_MAX} days")
    return Interval(from_ms, until_ms)


def _job(job: JobTally) -> JobTallyOut:
    return JobTallyOut(job_id=job.job_id, group_id=job.group_id, **job.tally.as_dict())
