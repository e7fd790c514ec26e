"""Alarm texts: failed and unresolved runs, recoveries, ended mutes, tests, clocks of nodes. Plain text."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.clock import Millis
from app.domain.enums import AlarmReason, HandleCode
from app.domain.runs.outcome import outcome_of
from app.domain.runs.reason import Messages, find_reason
from app.domain.runs.trigger_report import format_instant
from app.models.alarm import Alarm
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import SKEW_MAX_MS
from app.pipeline.clocks.guard import HOLD_MS, ClockNews
from app.services.alarms.channels import Message, MessageType
from app.services.alarms.muted_alarms import EndedMute, when_text
from app.settings.config import Config
from app.store.alarms.alarms import HeldAlarms

#: start of each title; also the keyword without which some chats refuse a message
PREFIX = "[Duetime]"
#: characters quoted from the message of a run, and runs and jobs named in an alarm
EXCERPT = 1_000
NAMED_RUNS = 10
NAMED_JOBS = 20


def compose(
    job: Job | None, group: Group | None, alarms: Sequence[Alarm], runs: Sequence[JobLog], config: Config
) -> Message:
    """Write the message about failed runs of one job, with reasons and links.

    ``runs`` are those of the alarms that have not been cleared from the log.
    """
    name, outcomes = _name(job), _outcomes(alarms, runs)
    count = _count_of_runs(outcomes)
    missing = len(alarms) - len(runs)
    lines = [
        f"Job: {name}",
        f"Executor group: {group.title} ({group.app_name})" if group else "Executor group: deleted",
        f"{count}: unknown whether it ran" if outcomes["unresolved"] else count,
        *([f"{missing} of them cleared from the log" if runs else "cleared from the log"] if missing else []),
        "",
    ]
    for run in runs[:NAMED_RUNS]:
        lines += [
            _headline(run, config),
            _link(run, config),  # before the reason, which a service may cut off
            _reason(run),
            "",
        ]
    if len(runs) > NAMED_RUNS:
        lines.append(f"… and {len(runs) - NAMED_RUNS} more")
    facts = _facts(job, group, _newest(runs), config) | {"runs": len(alarms)}
    if not runs:
        facts["state"] = alarms[-1].reason
    return Message(f"{PREFIX} {name}: {count}", "\n".join(lines), MessageType.FAILURE, facts)


def compose_recovery(job: Job | None, group: Group | None, run: JobLog | None, config: Config) -> Message:
    """Write the message about a failing job that has succeeded; None: the run has been cleaned."""
    name = _name(job)
    lines = [f"Job: {name}", f"Executor group: {group.title}" if group else ""]
    return Message(
        f"{PREFIX} {name}: recovered",
        "\n".join([*lines, *([_headline(run, config), _link(run, config)] if run else [])]),
        MessageType.SUCCESS,
        _facts(job, group, run, config) | {"state": "recovered", "reason": ""},
    )


def compose_mute_end(mute_end: EndedMute, config: Config) -> Message:
    """Write the summary of an ended mute: alarms held back, jobs still failing, jobs recovered."""
    mute, group = mute_end.mute, mute_end.group
    group_name = f"{group.title} ({group.app_name})" if group else "deleted"
    name = group_name if mute.group_id else _name(mute_end.jobs.get(mute.job_id))
    failing = [row for row in mute_end.alarms if row.job_id in mute_end.failing - mute_end.unknown]
    unknown = [row for row in mute_end.alarms if row.job_id in mute_end.failing & mute_end.unknown]
    healthy = [row for row in mute_end.alarms if row.job_id not in mute_end.failing]
    first = min(row.first_log_id for row in mute_end.alarms)
    last = max(row.last_log_id for row in mute_end.alarms)
    lines = [
        f"Executor group: {group_name}",
        f"Muted: by {mute.username}, from {when_text(mute.since_ms)} until {when_text(mute.until_ms)}",
        *([f"Reason: {mute.reason}"] if mute.reason else []),
        f"Held back: {_count(mute_end.alarms)}, runs {first} to {last}",
        *_section("Still failing:", failing, mute_end, config),
        *_section(
            "State unknown (the failed runs were cleared from the log, no success since):",
            unknown,
            mute_end,
            config,
        ),
    ]
    if healthy:
        more = f" … and {len(healthy) - NAMED_JOBS} more jobs" if len(healthy) > NAMED_JOBS else ""
        names = ", ".join(_job_name(mute_end, row) for row in healthy[:NAMED_JOBS])
        lines += ["", f"Recovered meanwhile: {names}{more}"]
    state = f"{len(failing)} jobs still failing" if mute.group_id and len(failing) != 1 else "still failing"
    facts = _facts(mute_end.jobs.get(mute.job_id), group, None, config) | {"state": "unmuted"}
    title = f"{PREFIX} {name}: no longer muted, {state if failing else 'state unknown'}"
    return Message(title, "\n".join(lines), MessageType.WARNING, facts)


def compose_test(name: str, username: str, config: Config, now_ms: Millis) -> Message:
    """Write the message of a test alarm; it must not look like a failure."""
    lines = [
        "This is a test. Nothing has failed.",
        f"Sent by {username} at {format_instant(now_ms, config.time_zone)}.",
        f"This target receives the failure alarms of: {name}",
        console_url(config),
    ]
    facts = {"state": "test", "link": console_url(config)}
    return Message(
        f"{PREFIX} TEST alarm, nothing has failed: {name}", "\n".join(lines), MessageType.INFO, facts
    )


def compose_clock(node: str, news: ClockNews, config: Config) -> Message:
    """Write the notice that a node has stopped scheduling because of its clock, or has resumed."""
    if not news.is_compared:
        return _compose_jump(node, news, config)
    if news.right:
        lines = [
            f"Node: {node}",
            "Its clock agrees with the database's again. The node schedules jobs again.",
            console_url(config),
        ]
        title = f"{PREFIX} {node}: clock correct again, scheduling resumed"
        return Message(title, "\n".join(lines), MessageType.SUCCESS, {"state": "node"})
    side = "ahead of" if news.skew_ms > 0 else "behind"
    lines = [
        f"Node: {node}",
        f"Its clock is {abs(news.skew_ms) / 1000:.1f} s {side} the database's."
        f" A node that is off by more than {SKEW_MAX_MS / 1000:g} s fires nothing.",
        "Correct the clock of this host or of the database's host; the node then resumes by itself."
        " If no other node runs meanwhile, missed runs follow the misfire strategies of their jobs.",
        console_url(config),
    ]
    title = f"{PREFIX} {node}: clock wrong, scheduling stopped"
    return Message(title, "\n".join(lines), MessageType.FAILURE, {"state": "node"})


def compose_workers_lost(silence: str, nodes: Sequence[str], config: Config) -> Message:
    """Write the notice that nothing is scheduled, with ``silence`` in words, or that workers have died."""
    lines = [
        f"Scheduling: {silence}. Nothing is fired, and no other alarm is sent." if silence else "",
        f"Workers that ended without a stop: {', '.join(nodes)}" if nodes else "",
        "On their host: systemctl status xxl-job-workers, and its log. What is missed meanwhile follows the"
        " misfire strategies of the jobs.",
        console_url(config),
    ]
    title = "no scheduler is running" if silence else f"{', '.join(nodes)}: workers have died"
    text = "\n".join(filter(None, lines))
    return Message(f"{PREFIX} {title}", text, MessageType.FAILURE, {"state": "node"})


def compose_workers_back(missing: Sequence[str], config: Config) -> Message:
    """Write the notice that a scheduler or workers run again; ``missing``: nodes that are still dead."""
    left = f"; still missing: {', '.join(missing)}" if missing else ", and no workers are missing"
    text = f"A scheduler is running{left}.\n{console_url(config)}"
    return Message(f"{PREFIX} workers are running again", text, MessageType.SUCCESS, {"state": "node"})


def _compose_jump(node: str, news: ClockNews, config: Config) -> Message:
    """Write the same notice for SQLite, which has no clock to compare with."""
    if news.right:
        lines = [
            f"Node: {node}",
            "Its clock is steady again. The node schedules jobs again.",
            console_url(config),
        ]
        title = f"{PREFIX} {node}: clock steady again, scheduling resumed"
        return Message(title, "\n".join(lines), MessageType.SUCCESS, {"state": "node"})
    lines = [
        f"Node: {node}",
        f"Its clock was set {news.skew_ms / 1000:.1f} s ahead. The node fires nothing until the clock is set"
        f" back or has been steady for {HOLD_MS // 1000} s.",
        "If it is wrong, correct it. Instants it has already started early are not started again.",
        console_url(config),
    ]
    title = f"{PREFIX} {node}: clock set ahead, scheduling paused"
    return Message(title, "\n".join(lines), MessageType.FAILURE, {"state": "node"})


def console_url(config: Config) -> str:
    """Return the public address of the console."""
    return (config.public_url or config.address).rstrip("/")


def _link(run: JobLog, config: Config) -> str:
    return f"{console_url(config)}/joblog/logDetailPage?id={run.id}"


def _facts(job: Job | None, group: Group | None, run: JobLog | None, config: Config) -> dict[str, Any]:
    """Return what a webhook gets of a job and one of its runs; docs/reference/pages.md describes it."""
    facts: dict[str, Any] = {
        "job": job.id if job else None,
        "description": job.job_desc if job else "",
        "executor": group.app_name if group else "",
        "run": run.id if run else None,
        "state": "",
        "reason": "",
        "link": console_url(config),
    }
    if run is None:
        return facts
    texts = Messages(run.trigger_msg or "", run.handle_msg or "", run.handle_msg or "")
    return facts | {
        "state": outcome_of(run.trigger_code, run.handle_code, run.killed),
        "reason": find_reason(run.trigger_code, run.handle_code, texts),
        "link": _link(run, config),
    }


def _outcomes(alarms: Sequence[Alarm], runs: Sequence[JobLog]) -> Counter[str]:
    """Return how many runs failed, are unresolved, or succeeded late; cleared ones are as in their alarms."""
    reasons = {alarm.log_id: alarm.reason for alarm in alarms}
    for run in runs:
        if run.handle_code == HandleCode.SUCCESS:
            reasons[run.id] = "succeeded late"
        elif run.handle_code != HandleCode.NONE:
            reasons[run.id] = AlarmReason.FAILED
    return Counter(map(str, reasons.values()))


def _count_of_runs(outcomes: Counter[str]) -> str:
    """Return the counts as text: ``4 runs failed, 1 unresolved``."""
    counts = [(outcomes[name], name) for name in ("failed", "succeeded late", "unresolved") if outcomes[name]]
    (first, name), *others = counts
    return ", ".join(
        [
            f"{first} {'runs' if first != 1 else 'run'} {name}",
            *(f"{count} {other}" for count, other in others),
        ]
    )


def _newest(runs: Sequence[JobLog]) -> JobLog | None:
    """Return the newest run, if possible one that has not succeeded late."""
    return max(runs, key=lambda run: (run.handle_code != HandleCode.SUCCESS, run.id), default=None)


def _name(job: Job | None) -> str:
    return f"{job.job_desc} (job {job.id})" if job else "a deleted job"


def _job_name(mute_end: EndedMute, row: HeldAlarms) -> str:
    """Return the name of a job with held alarms; only the id of one that has left the muted group."""
    job = mute_end.jobs[row.job_id]
    return (
        _name(job)
        if mute_end.group is None or job.job_group == mute_end.group.id
        else f"job {job.id}, moved to another executor group"
    )


def _section(heading: str, rows: Sequence[HeldAlarms], mute_end: EndedMute, config: Config) -> list[str]:
    """Return a heading and one line per job; nothing without jobs."""
    if not rows:
        return []
    more = [f"… and {len(rows) - NAMED_JOBS} more jobs"] if len(rows) > NAMED_JOBS else []
    url = f"{console_url(config)}/joblog?jobId="
    return [
        "",
        heading,
        *(f"{_job_name(mute_end, row)}: {_held_range(row)}, {url}{row.job_id}" for row in rows[:NAMED_JOBS]),
        *more,
    ]


def _held_range(row: HeldAlarms) -> str:
    return f"{_count([row])}, runs {row.first_log_id} to {row.last_log_id}"


def _count(rows: Sequence[HeldAlarms]) -> str:
    count, unknown = sum(row.count for row in rows), sum(row.unresolved_count for row in rows)
    return f"{count} alarm{'s' if count != 1 else ''}" + (f" ({unknown} unresolved)" if unknown else "")


def _headline(run: JobLog, config: Config) -> str:
    at = format_instant(run.trigger_time or 0, config.time_zone)
    address = run.executor_address or "none"
    codes = f"trigger code {run.trigger_code}, handle code {run.handle_code}"
    return f"Run {run.id}: triggered {at}, executor {address}, {codes}"


def _reason(run: JobLog) -> str:
    """Return the end of the executor's message, or of the dispatch trace."""
    return ((run.handle_msg if run.handle_code else None) or run.trigger_msg or "").strip()[-EXCERPT:]
