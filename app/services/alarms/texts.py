"""What people are told: of failed and unresolved runs, of recoveries, of the end of a mute, of a node's clock. Plain text."""

from collections.abc import Sequence

from app.clock import Millis
from app.config import Config
from app.domain.enums import TriggerCode
from app.domain.trigger_report import format_instant
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import SKEW_MAX_MS
from app.pipeline.clock_guard import HOLD_MS, ClockNews
from app.services.alarms.channels import Message
from app.services.alarms.muted_alarms import EndedMute, when_text
from app.store.alarms import Held

#: characters of a run's text in a message, runs and jobs named in it
EXCERPT = 1_000
NAMED_RUNS = 10
NAMED_JOBS = 20


def compose(job: Job | None, group: Group | None, runs: Sequence[JobLog], config: Config) -> Message:
    """Write the message about failed runs of one job: which, why, and where to look."""
    name = _name(job)
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
        lines += [
            _headline(run, config),
            _reason(run),
            f"{console_url(config)}/joblog/logDetailPage?id={run.id}",
            "",
        ]
    if len(runs) > NAMED_RUNS:
        lines.append(f"… and {len(runs) - NAMED_RUNS} more")
    return Message(f"[XXL-JOB] {name}: {count} {'unresolved' if unresolved else 'failed'}", "\n".join(lines))


def compose_recovery(job: Job | None, group: Group | None, run: JobLog, config: Config) -> Message:
    """Write the message that a failing job has succeeded."""
    name = _name(job)
    lines = [f"Job: {name}", f"Executor group: {group.title}" if group else "", _headline(run, config)]
    return Message(
        f"[XXL-JOB] {name}: recovered",
        "\n".join([*lines, f"{console_url(config)}/joblog/logDetailPage?id={run.id}"]),
    )


def compose_mute_end(ended: EndedMute, config: Config) -> Message:
    """Write the one message about what a mute held back: how much, of which runs, which jobs are still failing and which are not."""
    mute, group = ended.mute, ended.group
    of_group = f"{group.title} ({group.app_name})" if group else "deleted"
    name = of_group if mute.group_id else _name(ended.jobs.get(mute.job_id))
    failing = [each for each in ended.held if each.job_id in ended.failing - ended.unknown]
    unknown = [each for each in ended.held if each.job_id in ended.failing & ended.unknown]
    recovered = [each for each in ended.held if each.job_id not in ended.failing]
    first, last = min(each.first_log_id for each in ended.held), max(each.last_log_id for each in ended.held)
    lines = [
        f"Executor group: {of_group}",
        f"Muted: by {mute.username}, from {when_text(mute.since_ms)} to {when_text(mute.until_ms)}",
        *([f"Reason: {mute.reason}"] if mute.reason else []),
        f"Held back: {_count(ended.held)}, log {first} to {last}",
        *_listed("Still failing:", failing, ended, config),
        *_listed(
            "State unknown, what failed is no longer in the log and nothing has succeeded since:",
            unknown,
            ended,
            config,
        ),
    ]
    if recovered:
        more = f" … and {len(recovered) - NAMED_JOBS} more jobs" if len(recovered) > NAMED_JOBS else ""
        named = ", ".join(_of_group(ended, each) for each in recovered[:NAMED_JOBS])
        lines += ["", f"Failed meanwhile and succeeded since: {named}{more}"]
    what = f"{len(failing)} jobs still failing" if mute.group_id and len(failing) != 1 else "still failing"
    return Message(
        f"[XXL-JOB] {name}: no longer muted, {what if failing else 'state unknown'}", "\n".join(lines)
    )


def compose_test(name: str, username: str, config: Config, now_ms: Millis) -> Message:
    """Write the message of a test alarm: nobody may take it for a failure."""
    lines = [
        "This is a test. Nothing has failed.",
        f"{username} asked for it at {format_instant(now_ms, config.time_zone)}.",
        f"Whoever reads this would be told of failures of: {name}",
        console_url(config),
    ]
    return Message(f"[XXL-JOB] TEST alarm, nothing has failed: {name}", "\n".join(lines))


def compose_clock(node: str, news: ClockNews, config: Config) -> Message:
    """Write the message that a node fires nothing because its clock is wrong, or that it goes on."""
    if not news.compared:
        return _compose_jump(node, news, config)
    if news.right:
        lines = [
            f"Node: {node}",
            "Its clock agrees with the database's again: the node fires jobs as before.",
            console_url(config),
        ]
        return Message(f"[XXL-JOB] {node}: clock right again, scheduling goes on", "\n".join(lines))
    side = "ahead of" if news.skew_ms > 0 else "behind"
    lines = [
        f"Node: {node}",
        f"Its clock is {abs(news.skew_ms) / 1000:.1f} s {side} the database's; beyond {SKEW_MAX_MS / 1000:g} s a node fires nothing.",
        "Set the clock of this machine, or of the database's: the node then goes on by itself. Where no other node fires the jobs"
        " meanwhile, what they miss follows their misfire strategies.",
        console_url(config),
    ]
    return Message(f"[XXL-JOB] {node}: clock wrong, scheduling stopped", "\n".join(lines))


def _compose_jump(node: str, news: ClockNews, config: Config) -> Message:
    """Write the same for a clock that nothing can be compared with: the database is SQLite."""
    if news.right:
        lines = [
            f"Node: {node}",
            "Its clock is steady again: the node fires jobs as before.",
            console_url(config),
        ]
        return Message(f"[XXL-JOB] {node}: clock steady again, scheduling goes on", "\n".join(lines))
    lines = [
        f"Node: {node}",
        f"Its clock was set {news.skew_ms / 1000:.1f} s ahead. The node fires nothing until the clock is set back or has been steady"
        f" for {HOLD_MS // 1000} s.",
        "If it is wrong, correct it. Instants it has already started early are not started again.",
        console_url(config),
    ]
    return Message(f"[XXL-JOB] {node}: clock set ahead, scheduling pauses", "\n".join(lines))


def console_url(config: Config) -> str:
    """Return the address people open the console at."""
    return (config.public_url or f"http://{config.host}:{config.port}{config.context_path}").rstrip("/")


def _name(job: Job | None) -> str:
    return f"{job.job_desc} (job {job.id})" if job else "a deleted job"


def _of_group(ended: EndedMute, held: Held) -> str:
    """Return the name of a job of a muted group; one that was moved away is not told to the group it has left."""
    job = ended.jobs[held.job_id]
    return (
        _name(job)
        if ended.group is None or job.job_group == ended.group.id
        else f"job {job.id}, moved to another executor group"
    )


def _listed(heading: str, held: Sequence[Held], ended: EndedMute, config: Config) -> list[str]:
    """Return one line for each of the jobs below a heading; nothing where there are none."""
    if not held:
        return []
    more = [f"… and {len(held) - NAMED_JOBS} more jobs"] if len(held) > NAMED_JOBS else []
    url = f"{console_url(config)}/joblog?jobId="
    return [
        "",
        heading,
        *(f"{_of_group(ended, each)}: {_held(each)}, {url}{each.job_id}" for each in held[:NAMED_JOBS]),
        *more,
    ]


def _held(held: Held) -> str:
    return f"{_count([held])}, log {held.first_log_id} to {held.last_log_id}"


def _count(held: Sequence[Held]) -> str:
    count, unresolved = sum(each.count for each in held), sum(each.unresolved for each in held)
    return f"{count} alarm{'s' if count != 1 else ''}" + (f" ({unresolved} unresolved)" if unresolved else "")


def _headline(run: JobLog, config: Config) -> str:
    at = format_instant(run.trigger_time or 0, config.time_zone)
    address = run.executor_address or "none"
    return f"Log {run.id}: triggered {at}, executor {address}, trigger code {run.trigger_code}, result {run.handle_code}"


def _reason(run: JobLog) -> str:
    """Return the end of what is known: the executor's message, or the end of the sending's story."""
    return ((run.handle_msg if run.handle_code else None) or run.trigger_msg or "").strip()[-EXCERPT:]
