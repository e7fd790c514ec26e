"""Log list filters from the query string."""

from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from flask import request
from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis, storable_ms
from app.console.ui.lists.listing import whole_number
from app.console.ui.lists.ranges import read_local, requested_range
from app.console.ui.lists.sorting import LOGS, requested_order
from app.domain.access.permissions import Actor, Right
from app.domain.lists.filters import ListName, kept_filters
from app.services.runs.logs import LogFilter
from app.store.jobs import listing as job_lists

#: range shown if the URL has none, as in the original
DEFAULT_RANGE = "today"
#: digits of the seconds of the latest instant that can be stored
UNTIL_DIGITS = 10


@dataclass(frozen=True, slots=True)
class RequestedLogs:
    """The requested filters; 0 means all."""

    filter: LogFilter
    group_id: int
    job_id: int
    status: int
    range: str
    from_text: str
    to_text: str
    #: texts of the first and the last logical time; empty without one
    logical_texts: tuple[str, str]
    #: second up to which a further page lists runs; 0: there is no such bound
    until_s: int = 0


def filter_parameters() -> dict[str, str]:
    """Return the parameters of the active filters, for other URLs of the same runs."""
    return kept_filters(ListName.LOGS, request.args)


def requested_logs(
    session: Session, *, actor: Actor, zone: ZoneInfo, now_ms: Millis, default_range: str = DEFAULT_RANGE
) -> RequestedLogs:
    """Read the filters; a job without a group implies its group, as in the original."""
    group_id, job_id = max(0, whole_number("jobGroup", 0)), max(0, whole_number("jobId", 0))
    job = job_lists.find_job(session, job_id) if job_id else None
    if job is not None and actor.may(job.job_group, Right.VIEW):
        if group_id and job.job_group != group_id:
            job_id = 0
        group_id = group_id or job.job_group
    status = whole_number("logStatus", -1)
    logical_texts = request.args.get("logical_from", ""), request.args.get("logical_to", "")
    logical_from_ms, logical_to_ms = (_instant(text, zone) for text in logical_texts)
    # A run may start long after the instant that it stands for.
    span = requested_range("all" if any(logical_texts) else default_range, zone, now_ms=now_ms)
    log_filter = LogFilter(
        group_id=group_id,
        job_id=job_id,
        status=status,
        from_ms=span.bounds.from_ms,
        to_ms=span.bounds.to_ms,
        order=requested_order(LOGS),
        logical_from_ms=logical_from_ms,
        logical_to_ms=logical_to_ms,
    )
    until_s = _until_s()
    if until_s:
        bound_ms = until_s * SECOND_MS
        log_filter = replace(log_filter, to_ms=min(bound_ms, log_filter.to_ms or bound_ms))
    return RequestedLogs(
        log_filter,
        group_id,
        job_id,
        status,
        span.name,
        span.from_text,
        span.to_text,
        logical_texts,
        until_s=until_s,
    )


def _instant(text: str, zone: ZoneInfo) -> Millis | None:
    instant_ms = read_local(text, zone) if text else None
    return None if instant_ms is None else storable_ms(instant_ms)


def _until_s() -> int:
    text = request.args.get("until", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= UNTIL_DIGITS else 0
