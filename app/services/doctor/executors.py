"""Checks of executors, their jobs, schedules and alarms. Reads only; ``probe`` calls the executors."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, now_ms
from app.domain.alarms.alarm_urls import split_urls
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.alarms.mail_addresses import mails_of
from app.domain.enums import AddressType, AlarmState
from app.domain.executors.draining import is_drained
from app.domain.schedules.schedule import has_day_rules_listed
from app.domain.text.texts import counted
from app.errors import ExecutorUnreachable
from app.executors.addresses import refusal
from app.executors.calls import Peer, refusal_of
from app.executors.gateway import Gateway
from app.services.doctor.findings import NAMED_MAX, Findings, NothingFound, check, name_list, problem, warning
from app.settings.config import Config
from app.store.executors import drains, last_seen, registry
from app.store.executors import listing as group_lists
from app.store.jobs import scheduling
from app.store.nodes import diagnosis
from app.store.nodes.diagnosis import GroupRow

#: alarms that wait longer than this are late
ALARM_LATE_MS = 10 * MINUTE_MS
#: addresses probed, at the same time, and seconds for each
PROBED_MAX, AT_A_TIME, PROBE_S = 200, 16, 3.0
GROUPLESS_MAX = 20
#: groups without an executor that have a finding of their own
EMPTY_NAMED = 5
#: characters of a job's description
DESCRIPTION_MAX = 60


@check("executors")
def check_executors(session: Session, config: Config) -> Findings:
    """Check the addresses of all groups: stale, refused, drained, without a group."""
    at_ms, groups = now_ms(), diagnosis.find_groups(session)
    alive = registry.find_live(session, now_ms=at_ms)
    addresses = [(group, address) for group in groups for address in group.addresses]
    stale = [
        f"{group.app_name} {address}"
        for group, address in addresses
        if group.address_type == AddressType.AUTOMATIC and address not in alive.get(group.app_name, [])
    ]
    unusable = [
        f"{group.app_name} {address} ({reason})"
        for group, address in addresses
        if (reason := refusal(address, config.executor_networks))
    ]
    if stale:
        yield warning(
            f"addresses without a heartbeat for 90 s, to which runs are still sent: {name_list(stale)}",
            "start them; with console and workers running, they leave the list by themselves",
        )
    if unusable:
        yield problem(
            f"addresses that are never called: {name_list(unusable)}",
            "correct them in the console under Executors, or set XXL_JOB_EXECUTOR_NETWORKS",
        )
    groupless = group_lists.find_groupless(session, seen_after_ms=at_ms - DAY_MS, limit=GROUPLESS_MAX)
    if groupless:
        yield warning(
            f"executors registered under an AppName without a group: {name_list(list(groupless))}",
            "create the group in the console under Executors, or correct the AppName of the executor",
        )
    yield NothingFound(f"{counted(len(groups), 'group')}; addresses: {len(addresses)}")


@check("jobs")
def check_jobs(session: Session) -> Findings:
    """Check that the jobs whose schedule is on have an executor to run on."""
    jobs = defaultdict[int, list[int]](list)
    for job in diagnosis.find_enabled_jobs(session):
        jobs[job.job_group].append(job.id)
    groups = {group.id: group for group in diagnosis.find_groups(session)}
    orphans = [job_id for group_id, job_ids in jobs.items() if group_id not in groups for job_id in job_ids]
    if orphans:
        yield problem(
            f"each run of {_named_jobs(session, orphans)} fails: the executor group no longer exists",
            "move the jobs to another executor in the console, or switch them off",
        )
    empty = [groups[group_id] for group_id in jobs if group_id in groups and not groups[group_id].addresses]
    last = last_seen.find_last(session, {group.app_name for group in empty}) if empty else {}
    for group in empty[:EMPTY_NAMED]:
        seen_ms = last.get(group.app_name)
        ago = (now_ms() - (seen_ms or 0)) // MINUTE_MS
        since = f"the last one was seen {ago} min ago" if seen_ms else "none was ever seen"
        yield problem(
            f"each run of {_named_jobs(session, jobs[group.id])} fails:"
            f" no executor {group.app_name} is online, {since}",
            f"start an executor with AppName {group.app_name}, or switch the schedule off;"
            " if one runs, on its host: duetime-executor check",
        )
    if len(empty) > EMPTY_NAMED:
        names = [group.app_name for group in empty[EMPTY_NAMED:]]
        yield problem(
            f"each run of their jobs fails, too: no executor of {name_list(names)} is online",
            "start these executors, or switch the schedules off",
        )
    drained_groups = _all_drained(session, [groups[group_id] for group_id in jobs if group_id in groups])
    if drained_groups:
        yield warning(
            f"all addresses are drained, so each run fails: {name_list(drained_groups)}",
            "end the drain in the console under Executors",
        )
    yield NothingFound(f"{sum(map(len, jobs.values()))} on, all with an executor")


def _named_jobs(session: Session, job_ids: Sequence[int]) -> str:
    """Return the jobs by id and description, the first NAMED_MAX of them: ``job 3 "Nightly report"``."""
    names = scheduling.find_names(session, job_ids[:NAMED_MAX])
    texts = [f'{job_id} "{_display(names[job_id].job_desc)}"' for job_id in job_ids if job_id in names]
    more = len(job_ids) - len(texts)
    return f"job{'' if len(job_ids) == 1 else 's'} {', '.join(texts)}" + (f" and {more} more" if more else "")


def _display(description: str) -> str:
    """Return the description of a job for a terminal."""
    return "".join(filter(str.isprintable, description))[:DESCRIPTION_MAX]


def _all_drained(session: Session, groups: list[GroupRow]) -> list[str]:
    rows = drains.find_drained(session, [group.id for group in groups])
    return [
        group.app_name
        for group in groups
        if group.addresses and all(is_drained(address, rows.get(group.id, ())) for address in group.addresses)
    ]


@check("alarms")
def check_alarms(session: Session, config: Config) -> Findings:
    """Check whose alarms reach no one, and which could not be delivered."""
    at_ms = now_ms()
    silent, without_mail = _find_unreached(session, config)
    if silent:
        yield warning(
            f"no one is notified of failures of {_named_jobs(session, silent)}:"
            " no alarm mail and no channel is set",
            "add a channel for all jobs in the console under Alarms, Channels",
        )
    if without_mail:
        yield warning(
            f"no alarm mail is sent for {_named_jobs(session, without_mail)}: no mail server is set",
            "set XXL_JOB_MAIL_HOST and start console and workers again",
        )
    failed = diagnosis.count_alarms(
        session, AlarmState.FAILED, AlarmState.PARTLY, from_ms=at_ms - DAY_MS, to_ms=at_ms
    )
    if failed:
        yield problem(
            f"{counted(failed, 'alarm')} of the last day could not be delivered to all targets",
            "the page of the job names the reason under Alarms; try the channel there with Test alarm",
        )
    late = diagnosis.count_alarms(session, AlarmState.PENDING, from_ms=0, to_ms=at_ms - ALARM_LATE_MS)
    if late:
        yield warning(
            f"{counted(late, 'alarm')} waiting for more than {ALARM_LATE_MS // MINUTE_MS} min",
            "start the workers; see the log for: alarm not delivered",
        )
    yield NothingFound("those of all jobs that are on have a target")


def _find_unreached(session: Session, config: Config) -> tuple[list[int], list[int]]:
    """Return the ids of jobs without a target for alarms, and of those with mails without a mail server."""
    usable = [
        row for row in diagnosis.find_channels(session) if row.kind != ChannelKind.MAIL or config.mail.host
    ]
    urls = {group.id for group in diagnosis.find_groups(session) if split_urls(group.alarm_urls)}
    groups = {row.group_id for row in usable if row.group_id} | urls
    jobs = {row.job_id for row in usable if row.job_id}
    everyone = bool(config.alarm_urls) or any(row.for_all for row in usable)
    silent: list[int] = []
    without_mail: list[int] = []
    for job in diagnosis.find_enabled_jobs(session):
        mails = bool(mails_of(job.alarm_email))
        if mails and not config.mail.host:
            without_mail.append(job.id)
        elif not (mails or everyone or job.job_group in groups or job.id in jobs):
            silent.append(job.id)
    return silent, without_mail


def find_peers(session: Session, tokens: tuple[str, ...]) -> list[Peer]:
    """Return the executors of all groups with their tokens."""
    return [
        Peer(address, group.app_name, *(group.tokens or tokens))
        for group in group_lists.find_visible(session, None)
        for address in group.addresses
    ]


@check("probe")
def probe(executors: list[Peer], config: Config) -> Findings:
    """Call executors, PROBED_MAX at most, with their token and with a wrong one."""
    peers = executors[:PROBED_MAX]
    gateway = Gateway(config.executor_networks)
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="probe") as pool:
        failures = list(pool.map(lambda peer: _failure(gateway, peer), peers))
        answering = [peer for peer, failure in zip(peers, failures, strict=True) if not failure]
        is_open = list(pool.map(lambda peer: gateway.accepts_any_token(peer, timeout_s=PROBE_S), answering))
    failed = [f"{peer.address} ({failure})" for peer, failure in zip(peers, failures, strict=True) if failure]
    open_addresses = [
        peer.address for peer, accepts_any in zip(answering, is_open, strict=True) if accepts_any
    ]
    if failed:
        yield problem(
            f"{len(failed)} of {counted(len(peers), 'executor')} did not accept a probe: {name_list(failed)}",
            "start them, or open their ports to this host; if the token is wrong, give them the console's",
        )
    if open_addresses:
        yield problem(
            f"executors that accept any access token: {name_list(open_addresses)}",
            "set the access token there: anyone who reaches them can run code",
        )
    yield NothingFound(f"{counted(len(peers), 'executor')} answered and refused a wrong token")
    if len(executors) > len(peers):
        yield warning(
            f"{len(executors) - len(peers)} of {counted(len(executors), 'executor')} not probed",
            f"the doctor probes {PROBED_MAX}; test the others in the console under Executors",
        )


def _failure(gateway: Gateway, peer: Peer) -> str:
    """Return why an executor did not answer; empty if it did."""
    try:
        return refusal_of(gateway.beat(peer, timeout_s=PROBE_S))
    except ExecutorUnreachable as exc:
        return str(exc.reason)


@check("schedules")
def check_schedules(session: Session) -> Findings:
    """Name jobs of XXL-JOB with L or W in a list of days, which it reads as here since 3.1 only.

    A job that was saved here is left out: its next times were shown then.
    """
    jobs = diagnosis.find_unversioned_lists(session)
    names = [f"{job.id} ({job.schedule_conf})" for job in jobs if _is_listed(job.schedule_conf)]
    if names:
        yield warning(
            "jobs with L or W in a list of days, each of which has its own rule here and in XXL-JOB 3.1;"
            f" XXL-JOB 2.4 took W for the smallest day of the list, and refused L: {name_list(names)}",
            "compare their next run times in the console, and save each job; in 2.4, 1W,15W was 1W",
        )
    yield NothingFound("those of XXL-JOB mean the same here")


@check("parameters")
def check_parameters(session: Session, config: Config) -> Findings:
    """Name jobs whose placeholders a Java admin on the same database would send as they are."""
    job_ids = diagnosis.find_filling_jobs(session) if config.shared_with_java else []
    if names := [str(job_id) for job_id in job_ids]:
        yield warning(
            f"jobs whose parameter is filled in, which a Java admin does not: {name_list(names)}",
            "switch it off for these jobs, or end the Java admin and unset XXL_JOB_SHARED_WITH_JAVA",
        )
    yield NothingFound("every admin sends them as they are meant")


def _is_listed(expression: str) -> bool:
    try:
        return has_day_rules_listed(expression)
    except IndexError:  # It has too few fields, which the scan reports.
        return False
