"""What people are told: of failed and unresolved runs, and of recoveries. Plain text."""

from collections.abc import Sequence

from app.config import Config
from app.domain.enums import TriggerCode
from app.domain.trigger_report import format_instant
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services.channels import Message

#: characters of a run's text in a message, and runs named in it
EXCERPT = 1_000
NAMED_RUNS = 10


def compose(job: Job | None, group: Group | None, runs: Sequence[JobLog], config: Config) -> Message:
    """Write the message about failed runs of one job: which, why, and where to look."""
    name = f"{job.job_desc} (job {job.id})" if job else "a deleted job"
    count = f"{len(runs)} runs" if len(runs) != 1 else "1 run"
    unresolved = any(run.trigger_code == TriggerCode.UNRESOLVED for run in runs)
    what = "unresolved: nobody knows whether it ran" if unresolved else "failed"
    lines = [
        f"Job: {name}",
        f"Executor group: {group.title} ({group.app_name})" if group else "Executor group: deleted",
        f"{count} {what}",
        "",
    ]
    for run in runs[:NAMED_RUNS]:
        lines += [_headline(run, config), _reason(run), f"{console_url(config)}/joblog/logDetailPage?id={run.id}", ""]
    if len(runs) > NAMED_RUNS:
        lines.append(f"… and {len(runs) - NAMED_RUNS} more")
    return Message(f"[XXL-JOB] {name}: {count} {'unresolved' if unresolved else 'failed'}", "\n".join(lines))


def compose_recovery(job: Job | None, group: Group | None, run: JobLog, config: Config) -> Message:
    """Write the message that a failing job has succeeded."""
    name = f"{job.job_desc} (job {job.id})" if job else "a deleted job"
    lines = [f"Job: {name}", f"Executor group: {group.title}" if group else "", _headline(run, config)]
    return Message(f"[XXL-JOB] {name}: recovered", "\n".join([*lines, f"{console_url(config)}/joblog/logDetailPage?id={run.id}"]))


def console_url(config: Config) -> str:
    """Return the address people open the console at."""
    return (config.public_url or f"http://{config.host}:{config.port}{config.context_path}").rstrip("/")


def _headline(run: JobLog, config: Config) -> str:
    at = format_instant(run.trigger_time or 0, config.time_zone)
    address = run.executor_address or "none"
    return f"Log {run.id}: triggered {at}, executor {address}, trigger code {run.trigger_code}, result {run.handle_code}"


def _reason(run: JobLog) -> str:
    """Return the end of what is known: the executor's message, or the end of the sending's story."""
    return ((run.handle_msg if run.handle_code else None) or run.trigger_msg or "").strip()[-EXCERPT:]
