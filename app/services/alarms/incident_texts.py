"""Texts of messages about incidents. Plain text, with the facts for webhooks and services of incidents."""

from collections.abc import Sequence

from app.clock import MINUTE_MS, Millis
from app.domain.enums import MessageStep, PromiseKind
from app.domain.promises.incidents import Subject, broken_promises, subject_of
from app.domain.promises.promise import SWITCH_OFF, Promise
from app.domain.runs.trigger_report import format_instant
from app.models.group import Group
from app.models.job import Job
from app.models.promise import Incident
from app.services.alarms.channels import DEDUP_KEY, Message, MessageType
from app.services.alarms.texts import PREFIX, console_url
from app.settings.config import Config

#: incidents named in a message
NAMED = 20
#: fact with the keys of a message about several incidents
DEDUP_KEYS = "dedup_keys"
_SINCE = {Subject.INSTANT: "Due", Subject.WINDOW: "Since", Subject.SERIES: "First failure due"}


def compose(
    step: MessageStep, incidents: Sequence[Incident], job: Job | None, group: Group | None, config: Config
) -> Message:
    """Write a message about incidents of one job; a message that one was opened may be about many."""
    incident = incidents[0]
    name = f"{job.job_desc} (job {job.id})" if job else f"job {incident.job_id}"
    lines = [
        f"Job: {name}",
        f"Executor group: {group.title} ({group.app_name})" if group else "Executor group: deleted",
        "",
    ]
    for one in incidents[:NAMED]:
        lines += [*_lines(one, config), ""]
    if len(incidents) > NAMED:
        lines.append(f"… and {len(incidents) - NAMED} more incidents")
    reason = ", ".join(map(breach_text, broken_promises(incident.kinds).values()))
    title = f"{name}: {reason}" if len(incidents) == 1 else f"{name}: {len(incidents)} incidents"
    if step is MessageStep.KEPT_AGAIN and len(incidents) > 1:
        title = f"{title} kept again"
    elif step is MessageStep.KEPT_AGAIN:
        duration = duration_text(incident.ended_ms - incident.opened_ms)
        title = f"{name}: kept again after {duration}"
    elif step is MessageStep.ESCALATED:
        title = f"{title}, not acknowledged"
    kind = MessageType.SUCCESS if step is MessageStep.KEPT_AGAIN else MessageType.FAILURE
    facts = {
        "job": incident.job_id,
        "description": job.job_desc if job else "",
        "executor": group.app_name if group else "",
        "run": incident.log_id or None,
        "state": step.value,
        "reason": reason,
        "link": link_of(incident, config),
        "incident": incident.id,
        DEDUP_KEY: dedup_key(incident),
    }
    if len(incidents) > 1:
        facts |= {"incidents": [one.id for one in incidents], DEDUP_KEYS: [*map(dedup_key, incidents)]}
    return Message(f"{PREFIX} {title}", "\n".join(lines).rstrip(), kind, facts)


def dedup_key(incident: Incident) -> str:
    """Return the key by which services put all messages about an incident together."""
    return f"duetime:{incident.incident_key}"


def link_of(incident: Incident, config: Config) -> str:
    """Return the address of the page of an incident."""
    return f"{console_url(config)}/incidents/{incident.id}"


def _lines(incident: Incident, config: Config) -> list[str]:
    at = format_instant(incident.logical_ms, config.time_zone)
    broken = broken_promises(incident.kinds).values()
    lines = [f"Broken: {breach_text(promise)}" for promise in broken]
    lines += [f"{_SINCE[subject_of(incident.incident_key)]}: {at}", f"Incident: {link_of(incident, config)}"]
    if incident.log_id:
        lines.append(f"Run: {console_url(config)}/joblog/logDetailPage?id={incident.log_id}")
    if any(promise.then == SWITCH_OFF for promise in broken):
        lines.append("The schedule was switched off.")
    return lines


def breach_text(promise: Promise) -> str:
    """Return in words what is wrong when a promise is broken."""
    limit = duration_text(promise.limit_ms)
    match promise.kind:
        case PromiseKind.STARTS_WITHIN:
            return f"not started within {limit}"
        case PromiseKind.FINISHES_WITHIN:
            return f"not succeeded within {limit}"
        case PromiseKind.FINISHES_BY:
            return f"not succeeded by {promise.at}"
        case PromiseKind.SUCCEEDS_EVERY:
            return f"no success for {limit}"
        case PromiseKind.TAKES_AT_MOST:
            return f"takes longer than {limit}"
        case PromiseKind.TAKES_AT_LEAST:
            return f"took less than {limit}"
        case PromiseKind.TAKES_USUAL_TIMES:
            return f"takes over {promise.times:g} times as long as usual"
        case _:
            return _failures_text(promise.n)


def _failures_text(limit: int) -> str:
    if not limit:
        return "failed"
    return f"failed more than {'once' if limit == 1 else f'{limit} times'} in a row"


def duration_text(duration_ms: Millis) -> str:
    """Return a duration in its largest whole unit: ``90 s``, ``2 min``, ``3 h``."""
    seconds = max(0, duration_ms) // 1000
    if seconds and seconds % 3600 == 0:
        return f"{seconds // 3600} h"
    if seconds and seconds * 1000 % MINUTE_MS == 0:
        return f"{seconds // 60} min"
    return f"{seconds} s"
