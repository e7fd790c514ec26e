"""Preview of rounds: the next ones of a job that runs after others, and which predecessors do not fit."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, Millis, now_ms
from app.console.jobs.form.draft import schedule_of
from app.console.jobs.form.forms import JobForm
from app.console.ui.forms.runs_after_fields import runs_after_in
from app.console.ui.rounds.words import foreign_name, rule_text
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.rounds.fitting import Fit, Predecessor, fit_of, next_rounds
from app.domain.rounds.kinds import RoundKind
from app.domain.rounds.runs_after import RunsAfter
from app.domain.schedules.schedule import RESTING, Schedule, check_schedule
from app.domain.text.input_errors import InputErrors
from app.errors import InvalidInput
from app.models.job import Job
from app.services.jobs import rules
from app.store.jobs import scheduling as job_store
from app.store.pickers import overview

blueprint = Blueprint("rounds_preview", __name__, url_prefix="/jobinfo")
POLICY = {"part": Access.LOGIN}


@dataclass(frozen=True, slots=True)
class Member:
    """Predecessor in a round: its job, and what its schedule says."""

    name: str
    fit: Fit


@dataclass(frozen=True, slots=True)
class NextRound:
    """One of the next rounds; ``text`` is local time in the job's zone."""

    at_ms: Millis
    text: str
    members: Sequence[Member]


@dataclass(frozen=True, slots=True)
class RoundsPreview:
    """The next rounds of a job, and what is wrong with its predecessors, a sentence each."""

    #: the rule in words
    rule: str
    rounds: Sequence[NextRound]
    warnings: Sequence[str]
    zone: str


@blueprint.get("/rounds")
def part() -> ResponseReturnValue:
    """Return the preview of the rounds in the form while it is edited."""
    with read_scope() as session:
        rounds = rounds_of(session, JobForm(request.args))
    return render_template("jobs/_rounds_preview.html", rounds=rounds)


def rounds_of(session: Session, form: JobForm) -> RoundsPreview | None:
    """Return the preview of the rounds of the job in the form; None: it runs after no job."""
    value = runs_after_in(form)
    if value is None:
        return None
    jobs = _find_visible(session, value.jobs, actor=current_actor())
    following = _following(session, jobs.values())
    zone_name = settings().time_zone
    schedule = schedule_of(form, zone_name, InputErrors())
    predecessors = {
        job_id: predecessor
        for job_id, job in jobs.items()
        if (predecessor := _predecessor(job, zone_name, following)) is not None
    }
    names = {job_id: f"{job_id} {job.job_desc}" for job_id, job in jobs.items()}
    return preview_of(value, _own(schedule, zone_name), predecessors, names, now_ms=now_ms())


def _find_visible(session: Session, job_ids: Sequence[int], *, actor: Actor) -> dict[int, Job]:
    jobs = job_store.find_jobs(session, job_ids)
    return {
        job_id: jobs[job_id]
        for job_id in job_ids
        if job_id in jobs and actor.may(jobs[job_id].job_group, Right.VIEW)
    }


def _following(session: Session, jobs: Collection[Job]) -> set[int]:
    """Return those of the jobs that run after others, or, without a schedule, as children."""
    after = {job.id for job in jobs if job.runs_after}
    without = (job.id for job in jobs if job.schedule_type == ScheduleType.NONE and job.id not in after)
    return after | {job_id for job_id in without if overview.find_parents(session, job_id, group_ids=None)}


def _own(schedule: Schedule, zone_name: str) -> Predecessor:
    """Return the job's own schedule; of a wrong one, none."""
    try:
        check_schedule(schedule)
    except (InvalidInput, ValueError):
        schedule = Schedule(ScheduleType.NONE, "", zone_name)
    return Predecessor(schedule, is_on=True)


def _predecessor(job: Job, zone_name: str, following: Collection[int]) -> Predecessor | None:
    """Return what the schedule of a job says; None if another program has stored a wrong one."""
    try:
        schedule = rules.schedule_of(job, zone_name)
        check_schedule(schedule)
    except (InvalidInput, ValueError):
        return None
    is_on = job.trigger_status == TriggerStatus.RUNNING
    next_ms = job.trigger_next_time if is_on and job.trigger_next_time < RESTING else 0
    return Predecessor(schedule, is_on, job.id in following, next_ms)


def preview_of(
    value: RunsAfter,
    own: Predecessor,
    predecessors: Mapping[int, Predecessor],
    names: Mapping[int, str],
    *,
    now_ms: Millis,
) -> RoundsPreview:
    """Return the preview; ``predecessors`` are those whose schedules are known, ``names`` of visible jobs."""
    zone_name = own.schedule.time_zone
    rounds = next_rounds(own, [*predecessors.values()], value.round, now_ms=now_ms)
    fits = {
        at_ms: {
            job_id: fit_of(predecessor, value.round, at_ms, zone_name)
            for job_id, predecessor in predecessors.items()
        }
        for at_ms in rounds or [now_ms]
    }
    local = ZoneInfo(zone_name)
    entries = [
        NextRound(
            at_ms,
            f"{datetime.fromtimestamp(min(at_ms, LATEST_MS) / 1000, local):%Y-%m-%d %H:%M:%S}",
            [
                Member(names.get(job_id) or foreign_name(), fits[at_ms].get(job_id, Fit.UNKNOWN))
                for job_id in value.jobs
            ],
        )
        for at_ms in rounds
    ]
    warnings = [
        text
        for job_id in predecessors
        if (
            text := _warning(
                names[job_id], {fits[at_ms][job_id] for at_ms in fits}, value.round, bool(rounds)
            )
        )
    ]
    return RoundsPreview(rule_text(value), entries, warnings, zone_name)


def _warning(name: str, fits: set[Fit], kind: RoundKind, has_rounds: bool) -> str:
    """Return what is wrong with a predecessor; empty if nothing is."""
    if Fit.OFF in fits:
        return _("%(job)s is switched off: rounds wait for it until their deadline.", job=name)
    if Fit.SILENT in fits:
        return _(
            "%(job)s has no schedule and runs after no job: it runs only by hand or through the API.",
            job=name,
        )
    if Fit.MISSING not in fits or not has_rounds:
        return ""
    text = _("%(job)s has no run that belongs to each of these rounds.", job=name)
    if kind is RoundKind.LOGICAL_TIME:
        remedy = _("Jobs with different times meet in rounds of the same day.")
        return f"{text} {remedy}".replace("。 ", "。")
    return text
