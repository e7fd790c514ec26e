"""Texts of messages about incidents. Plain text, with the facts for webhooks and services of incidents."""

from collections.abc import Sequence

from app.clock import MINUTE_MS, Millis
from app.domain.enums import MessageStep, PromiseKind
from app.domain.promises.promise import SWITCH_OFF, Promise, promise_of, read_kinds
from app.domain.runs.trigger_report import format_instant
from app.models.group import Group
from app.models.job import Job
from app.models.promise import Incident
from app.services.alarms.channels import Message, MessageType
from app.services.alarms.texts import PREFIX, console_url
from app.settings.config import Config

#: incidents named in a message
NAMED = 20
#: fact by which a service knows that messages are about the same incident
DEDUP_KEY = "dedup_key"
#: the same of a message about several incidents
DEDUP_KEYS = "dedup_keys"


def compose(
    step: MessageStep, incidents: Sequence[Incident], job: Job | None, group: Group | None, config: Config
) -> Message:
    """Write a message about incidents of one job, of which all but the first step have one."""
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
    title = f"{name}: {', '.join(map(breach_text, promises_of(incident)))}"
    if len(incidents) > 1:
        title = f"{name}: {len(incidents)} incidents"
    if step is MessageStep.KEPT_AGAIN and len(incidents) > 1:
        title = f"{title} kept again"
    elif step is MessageStep.KEPT_AGAIN:
        lasted = duration_text(incident.ended_ms - incident.opened_ms)
        title = f"{name}: kept again after {lasted}"
    elif step is MessageStep.ESCALATED:
        title = f"{title}, not acknowledged"
    kind = MessageType.SUCCESS if step is MessageStep.KEPT_AGAIN else MessageType.FAILURE
    facts = {
        "job": incident.job_id,
        "description": job.job_desc if job else "",
        "executor": group.app_name if group else "",
        "run": incident.log_id or None,
        "state": step.value,
        "reason": ", ".join(map(breach_text, promises_of(incident))),
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


def promises_of(incident: Incident) -> list[Promise]:
    """Return the broken promises of an incident."""
    return [promise_of(members) for members in read_kinds(incident.kinds).values()]


def _lines(incident: Incident, config: Config) -> list[str]:
    at = format_instant(incident.logical_ms, config.time_zone)
    broken = promises_of(incident)
    since = {"i": "Due", "w": "Since", "r": "First failure due"}[incident.incident_key[0]]
    lines = [f"Broken: {breach_text(promise)}" for promise in broken]
    lines += [f"{since}: {at}", f"Incident: {link_of(incident, config)}"]
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
            return f"failed more than {promise.n} times in a row"


def duration_text(duration_ms: Millis) -> str:
    """Return a duration in its largest whole unit: ``90 s``, ``2 min``, ``3 h``."""
    seconds = max(0, duration_ms) // 1000
    if seconds and seconds % 3600 == 0:
        return f"{seconds // 3600} h"
    if seconds and seconds * 1000 % MINUTE_MS == 0:
        return f"{seconds // 60} min"
    return f"{seconds} s"
