"""Muted alarms: hold them back while a mute lasts, and collect the data of its summary."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.domain.alarms.mail_addresses import mails_of
from app.domain.alarms.muting import UNTIL_UNDONE_MS, longest
from app.models.alarm import Alarm
from app.models.base import local_datetime, zone_name
from app.models.group import Group
from app.models.job import Job
from app.models.mute import Mute
from app.store.alarms import alarms, mutes, recoveries
from app.store.alarms.alarms import HeldAlarms
from app.store.executors import groups
from app.store.fires import logs
from app.store.jobs import scheduling as jobs
from app.store.jobs.listing import ListedJob
from app.store.jobs.scheduling import JobName

#: ended mutes claimed in one round
ENDED_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class EndedMute:
    """A mute that has ended while jobs whose alarms it held back are still failing."""

    mute: Mute
    #: group whose channels are notified; None: deleted
    group: Group | None
    #: jobs with held alarms, by id; deleted ones are missing
    jobs: dict[int, Job]
    #: alarms held back, one row per job
    alarms: list[HeldAlarms]
    #: ids of the jobs without a success since, according to the log
    failing: frozenset[int]
    #: failing jobs whose failed run has been cleared from the log, perhaps together with a success
    unknown: frozenset[int] = frozenset()

    @property
    def last_failures(self) -> list[int]:
        """The last held run of each job that is still failing."""
        return [row.last_log_id for row in self.alarms if row.job_id in self.failing]

    @property
    def mails(self) -> list[str]:
        """Mail addresses of the failing jobs; jobs that have left the muted group are skipped."""
        return [mail for job_id in sorted(self.failing) for mail in self._mails_of(job_id)]

    def jobs_of_mail(self, address: str) -> set[int]:
        """Return the jobs with held alarms that have a mail address."""
        return {row.job_id for row in self.alarms if address in self._mails_of(row.job_id)}

    def part(self, job_ids: Collection[int]) -> "EndedMute":
        """Return the part that concerns some jobs."""
        rows = [row for row in self.alarms if row.job_id in job_ids]
        return replace(self, alarms=rows, failing=self.failing & {row.job_id for row in rows})

    def _mails_of(self, job_id: int) -> list[str]:
        job = self.jobs[job_id]
        return mails_of(job.alarm_email) if self.group is None or job.job_group == self.group.id else []


def when_text(until_ms: Millis) -> str:
    """Return the end of a mute as text, in the configured zone."""
    return "unmuted" if until_ms >= UNTIL_UNDONE_MS else f"{local_datetime(until_ms)} {zone_name()}"


def find_mutes(
    session: Session, candidates: Sequence[Job | JobName | ListedJob], *, now_ms: Millis
) -> dict[int, Mute]:
    """Return job id -> the mute in effect for it; jobs that are not muted are left out."""
    covering = mutes.find_covering(session, [(job.id, job.job_group) for job in candidates])
    mute_by_job = {job_id: longest(mutes_of_job, now_ms=now_ms) for job_id, mutes_of_job in covering.items()}
    return {job_id: mute for job_id, mute in mute_by_job.items() if mute is not None}


def lock_mutes(session: Session, candidates: Sequence[Job], *, now_ms: Millis) -> dict[int, Mute]:
    """Like ``find_mutes``, and keep the mutes from ending before the transaction does."""
    mute_by_job = find_mutes(session, candidates, now_ms=now_ms)
    mute_ids = mutes.lock_holding(session, {mute.id for mute in mute_by_job.values()})
    return {job_id: mute for job_id, mute in mute_by_job.items() if mute.id in mute_ids}


def hold(session: Session, alarms_of_job: Sequence[Alarm], mute: Mute) -> None:
    """Hold back the alarms of a muted job; results of earlier attempts are kept."""
    reason = f": {mute.reason}" if mute.reason else ""
    mute_note = {"muted": f"by {mute.username} until {when_text(mute.until_ms)}{reason}"}
    by_outcome: dict[str, list[Alarm]] = defaultdict(list)
    for alarm in alarms_of_job:
        by_outcome[alarm.outcome or "{}"].append(alarm)
    for outcome, alarms_of_outcome in by_outcome.items():
        results = json.dumps(json.loads(outcome) | mute_note, ensure_ascii=False)
        alarms.hold(session, alarms_of_outcome, mute_id=mute.id, outcome=results)


def take_ended(*, owner: str, now_ms: Millis, lease_ms: Millis) -> list[EndedMute]:
    """Claim ended mutes with something to report; delete the others.

    The failing jobs are found between two transactions: many runs may have to be read, and a
    transaction would block all writers meanwhile.
    """
    take = partial(mutes.take_ended, owner=owner, now_ms=now_ms, lease_ms=lease_ms, limit=ENDED_AT_ONCE)
    mute_ends = []
    for mute in transact(take):
        with read_scope() as session:
            candidate = _find_failing(session, mute)
        mute_end = transact(partial(_hand_over, candidate=candidate, now_ms=now_ms))
        if mute_end is not None:
            mute_ends.append(mute_end)
    return mute_ends


def finish(
    session: Session, mute_end: EndedMute, *, is_sent: bool, outcome: str, lease_until: Millis
) -> None:
    """Delete a mute after its summary; for a mute renewed meanwhile, only release the alarms reported."""
    mute_id = mute_end.mute.id
    if mutes.lock_taken(session, mute_end.mute) is not None:
        alarms.release(
            session,
            mute_id,
            log_ids=mute_end.last_failures if is_sent else [],
            outcome=outcome,
            lease_until=lease_until,
        )
        mutes.delete_mute(session, mute_id)
    elif is_sent and mutes.lock_renewed(session, mute_end.mute):
        alarms.mark_sent(session, mute_id, mute_end.last_failures, outcome=outcome, lease_until=lease_until)
        alarms.release_until(session, mute_id, {row.job_id: row.last_log_id for row in mute_end.alarms})


def put_off(
    session: Session, mute_end: EndedMute, *, outcome: str, next_ms: Millis, counts: bool = True
) -> None:
    """Retry the summary at ``next_ms``, for the targets that have not accepted it.

    ``counts``: whether this was an attempt.
    """
    mute = mutes.lock_taken(session, mute_end.mute)
    if mute is not None:
        mute.next_ms, mute.outcome = next_ms, outcome
        mute.attempts -= 0 if counts else 1


def _find_failing(session: Session, mute: Mute) -> EndedMute:
    """Find the jobs of a claimed mute that are still failing; no further alarms are held under it."""
    rows = alarms.find_held(session, mute.id)
    jobs_by_id = jobs.find_jobs(session, [row.job_id for row in rows])
    failing = (
        jobs_by_id.keys() - recoveries.find_successes(session, jobs_by_id.keys(), mute_id=mute.id).keys()
    )
    group_id = mute.group_id or next((job.job_group for job in jobs_by_id.values()), 0)
    last = {row.job_id: row.last_log_id for row in rows if row.job_id in failing}
    time_by_log = logs.find_trigger_times(session, last.values())
    unknown = frozenset(job_id for job_id, log_id in last.items() if log_id not in time_by_log)
    rows = [row for row in rows if row.job_id in jobs_by_id]
    return EndedMute(
        mute,
        groups.find_groups(session, [group_id]).get(group_id),
        jobs_by_id,
        rows,
        frozenset(failing),
        unknown,
    )


def _hand_over(session: Session, *, candidate: EndedMute, now_ms: Millis) -> EndedMute | None:
    """Hand alarms of jobs that are still muted over to the other mute; return the rest.

    None: nothing to report, or the mute was renewed meanwhile.
    """
    mute = candidate.mute
    if mutes.lock_taken(session, mute) is None:
        return None
    other_mutes = lock_mutes(session, list(candidate.jobs.values()), now_ms=now_ms)
    alarms.hand_over(session, mute.id, {job_id: other.id for job_id, other in other_mutes.items()})
    rows = [row for row in candidate.alarms if row.job_id not in other_mutes]
    rest = replace(candidate, alarms=rows, failing=candidate.failing - other_mutes.keys())
    if rest.failing:
        return rest
    alarms.release(session, mute.id, log_ids=[], outcome="", lease_until=0)
    mutes.delete_mute(session, mute.id)
    return None
