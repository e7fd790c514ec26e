"""The original's JSON endpoints of runs and of the day chart.

Source: docs/reference/console.md, sections 6, 10 and 11.
"""

from datetime import datetime
from html import escape
from zoneinfo import ZoneInfo

from flask import Blueprint, Response
from werkzeug.exceptions import BadRequest

from app.clock import DAY_MS, Millis, now_ms
from app.console.scripting.dates import read_lenient, read_strict
from app.console.scripting.rows import job_row, log_row
from app.console.web.access import Access
from app.console.web.current import current_actor, executor_caller, settings
from app.console.web.envelope import LONG_BITS, envelope, int_parameter, page_range, table, text_or_empty
from app.database.flask_db import read_scope
from app.services.jobs import jobs
from app.services.report import dashboard
from app.services.runs import logs
from app.services.runs.logs import LogFilter, LogStatus

blueprint = Blueprint("scripting_logs", __name__)
POLICY = {
    "page_list": Access.VIEW,
    "jobs_by_group": Access.VIEW,
    "log_detail_cat": Access.VIEW,
    "log_kill": Access.OPERATE,
    "clear_log": Access.OPERATE,
    "chart_info": Access.LOGIN,
}

RANGE_SEPARATOR = " - "
#: any other status means all
ORIGINAL_STATUSES = (LogStatus.SUCCESS, LogStatus.FAILED, LogStatus.RUNNING)
#: default days of the chart
CHART_DAYS = 7


@blueprint.route("/joblog/pageList", methods=["GET", "POST"])
def page_list() -> Response:
    """List runs with an exact total, because exporters read it."""
    from_ms, to_ms = _range(text_or_empty("filterTime"))
    status = int_parameter("logStatus")
    log_filter = LogFilter(
        group_id=int_parameter("jobGroup"),
        job_id=int_parameter("jobId"),
        status=status if status in ORIGINAL_STATUSES else LogStatus.ALL,
        from_ms=from_ms,
        to_ms=to_ms,
    )
    start, length = page_range()
    with read_scope() as session:
        page = logs.list_logs(
            session, log_filter, actor=current_actor(), start=start, length=length, count_all=True
        )
        return table(page, [log_row(log) for log in page.rows])


@blueprint.route("/joblog/getJobsByGroup", methods=["GET", "POST"])
def jobs_by_group() -> Response:
    """List the jobs of a group; empty without access to it."""
    group_id, actor = int_parameter("jobGroup"), current_actor()
    with read_scope() as session:
        return envelope(
            [job_row(job, actor) for job in jobs.list_jobs_of_group(session, group_id, actor=actor)]
        )


@blueprint.route("/joblog/logDetailCat", methods=["GET", "POST"])
def log_detail_cat() -> Response:
    """Return part of a run's log, HTML-escaped as clients of the original expect."""
    log_id, from_line_num = int_parameter("logId", bits=LONG_BITS), int_parameter("fromLineNum")
    piece = logs.read_log(log_id, from_line_num, actor=current_actor(), caller=executor_caller())
    return envelope(
        {
            "fromLineNum": piece.from_line_num,
            "toLineNum": piece.to_line_num,
            "logContent": escape(piece.log_content),
            "end": piece.is_end,
        }
    )


@blueprint.post("/joblog/logKill")
def log_kill() -> Response:
    """Kill a run."""
    log_id = int_parameter("id", bits=LONG_BITS)
    return envelope(
        logs.kill_log(log_id, actor=current_actor(), caller=executor_caller(), now_ms=now_ms()) or None
    )


@blueprint.post("/joblog/clearLog")
def clear_log() -> Response:
    """Delete runs."""
    group_id, job_id, kind = int_parameter("jobGroup"), int_parameter("jobId"), int_parameter("type")
    logs.clear_logs(group_id, job_id, kind, actor=current_actor(), now_ms=now_ms())
    return envelope()


@blueprint.route("/chartInfo", methods=["GET", "POST"])
def chart_info() -> Response:
    """Return counts per day; days without runs are omitted."""
    from_ms, to_ms = _chart_bound("startDate"), _chart_bound("endDate")
    with read_scope() as session:
        days = []
        if from_ms is not None and to_ms is not None:
            days = dashboard.chart(session, actor=current_actor(), from_ms=from_ms, to_ms=to_ms).days
    counts = [(day.day, day.running, day.success, day.failed) for day in days] or [
        (day, 0, 0, 0) for day in _last_days(now_ms())
    ]
    names, running, success, failed = (list(column) for column in zip(*counts, strict=True))
    return envelope(
        {
            "triggerDayList": names,
            "triggerDayCountRunningList": running,
            "triggerDayCountSucList": success,
            "triggerDayCountFailList": failed,
            "triggerCountRunningTotal": sum(running),
            "triggerCountSucTotal": sum(success),
            "triggerCountFailTotal": sum(failed),
        }
    )


def _range(text: str) -> tuple[Millis | None, Millis | None]:
    """Read ``2024-05-01 00:00:00 - 2024-05-01 23:59:59``.

    A half that is not a date sets no bound, as in the original.
    """
    halves = text.split(RANGE_SEPARATOR)
    if len(halves) != 2:
        return None, None
    zone = settings().time_zone
    return read_lenient(halves[0], zone), read_lenient(halves[1], zone)


def _chart_bound(name: str) -> Millis | None:
    text = text_or_empty(name).strip()
    instant = read_strict(text, settings().time_zone)
    if text and instant is None:
        raise BadRequest(f"{name} is not a date such as 2024-05-01 00:00:00")
    return instant


def _last_days(at_ms: Millis) -> list[str]:
    """Return the last days up to today, oldest first."""
    zone = ZoneInfo(settings().time_zone)
    noon = datetime.fromtimestamp(at_ms / 1000, zone).replace(hour=12)
    first_ms = int(noon.timestamp()) * 1000 - (CHART_DAYS - 1) * DAY_MS
    return [
        datetime.fromtimestamp((first_ms + day * DAY_MS) / 1000, zone).strftime("%Y-%m-%d")
        for day in range(CHART_DAYS)
    ]
