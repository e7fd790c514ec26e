"""Export of completeness as CSV and JSON: numbers of a period by job, read in pages while they are sent."""

import json
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from flask import Blueprint, Response, stream_with_context

from app.clock import Millis, now_ms
from app.console.report.completeness.period import Query, read_query
from app.console.ui.csv_cells import BYTE_ORDER_MARK, csv_lines
from app.console.ui.filters import iso
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor
from app.domain.completeness.equation import Outcome, Tally, Term, tally_of
from app.services.completeness.export import Export, find_export, page_of_export
from app.services.completeness.report import scope_of
from app.services.executors.groups import visible_groups
from app.services.jobs.choices import name_jobs
from app.store.completeness.totals import JobSum

blueprint = Blueprint("completeness_export", __name__)
POLICY = {
    "as_csv": Access.LOGIN,
    "as_json": Access.LOGIN,
}

#: jobs read at once
PAGE = 500
#: terms with numbers by reason
_BY_REASON = (Term.NOT_STARTED, Term.SKIPPED)
_NUMBERS = ("expected", *Term, "unexpected", "unknown", "java", *Outcome)
HEAD = ("from", "to", "job_id", "job", "executor", *_NUMBERS, "reasons")


#: a job with its names and numbers
Row = dict[str, Any]


def _rows(export: Export, actor: Actor) -> Iterator[list[Row]]:
    """Yield the jobs in pages."""
    for start in range(0, len(export.job_ids), PAGE):
        with read_scope() as session:
            jobs = page_of_export(session, export, export.job_ids[start : start + PAGE])
            names = name_jobs(session, [job.job_id for job in jobs], actor=actor)
            titles = {group.id: group.app_name for group in visible_groups(session, actor)}
        yield [
            _row(job, name.text, titles.get(job.group_id, "")) for job, name in zip(jobs, names, strict=True)
        ]


def _row(job: JobSum, text: str, executor: str) -> Row:
    name = text.removeprefix(str(job.job_id)).strip()
    ids = {"job_id": job.job_id, "job": name, "group_id": job.group_id, "executor": executor}
    return ids | job.tally.as_dict()


@blueprint.get("/completeness.csv")
def as_csv() -> Response:
    """Return the numbers of the jobs as a table for spreadsheets."""
    query, export, actor = _read_request()
    return _download(_csv(query, _rows(export, actor)), query, "csv", "text/csv; charset=utf-8")


@blueprint.get("/completeness.json")
def as_json() -> Response:
    """Return the numbers of the jobs, and then those of all of them, as JSON."""
    query, export, actor = _read_request()
    return _download(_json(query, export.until_ms, _rows(export, actor)), query, "json", "application/json")


def _read_request() -> tuple[Query, Export, Actor]:
    actor, at_ms, zone = current_actor(), now_ms(), ZoneInfo(settings().time_zone)
    query = read_query(zone, now_ms=at_ms)
    scope = scope_of(actor, group_id=query.group_id, job_id=query.job_id)
    with read_scope() as session:
        return query, find_export(session, scope, query.period, zone=zone, now_ms=at_ms), actor


def _download(chunks: Iterator[str], query: Query, kind: str, content_type: str) -> Response:
    response = Response(stream_with_context(chunks), content_type=content_type)
    first, last = query.period
    response.headers.set("Content-Disposition", "attachment", filename=f"completeness-{first}-{last}.{kind}")
    return response


def _csv(query: Query, pages: Iterator[list[Row]]) -> Iterator[str]:
    yield BYTE_ORDER_MARK + csv_lines([HEAD])
    days = [day.isoformat() for day in query.period]
    for rows in pages:
        yield csv_lines([*days, *_cells(row)] for row in rows)


def _cells(row: Row) -> list[str]:
    numbers = [sum(row[name].values()) if name in _BY_REASON else row[name] for name in _NUMBERS]
    reasons = [f"{reason} {count}" for term in _BY_REASON for reason, count in sorted(row[term].items())]
    return [str(row["job_id"]), row["job"], row["executor"], *map(str, numbers), ", ".join(reasons)]


def _json(query: Query, until_ms: Millis, pages: Iterator[list[Row]]) -> Iterator[str]:
    first, last = query.period
    head = {"from": first.isoformat(), "to": last.isoformat(), "time_zone": settings().time_zone}
    yield json.dumps(head | {"counted_until": iso(until_ms) if until_ms else None})[:-1] + ', "jobs": ['
    total, separator = Tally(), "\n"
    for rows in pages:
        for row in rows:
            total.add(tally_of(row))
        yield separator + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        separator = ",\n"
    yield f'\n], "total": {json.dumps(total.as_dict())}}}\n'
