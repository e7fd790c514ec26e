"""Placeholders of parameters: checks on save and trigger, and what the next runs of a job would get.

The language is in ``app.domain.parameters``; the claim fills it in (``app.pipeline.fill``).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.calendars.preview import logical_times
from app.domain.enums import ParamForm, RouteStrategy, ScheduleType
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.variables import placeholder
from app.domain.parameters.errors import InvalidTemplate, NotFilled
from app.domain.parameters.placeholders import Fact, Origin, Unknown
from app.domain.parameters.scanner import OPEN
from app.domain.parameters.template import KnownNames, Template, check_names, parse
from app.domain.parameters.values import Values
from app.domain.runs.log_copies import CHARACTER_BYTES
from app.domain.runs.logical_times import second_of
from app.domain.schedules.schedule import Schedule, check_schedule, next_times
from app.domain.text.limits import limited_text
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.fire import Fire
from app.models.job import Job
from app.store.base.text_widths import width_of
from app.store.jobs import listing as job_lists
from app.store.variables import values as variables
from app.store.variables.variables import list_usable_names

#: name of the field in errors
PARAMETER = "executorParam"
PARAM_MAX = FIELD_OF["executor_param"].max_length
#: runs of a preview
PREVIEWED = 3
#: most names of variables and secrets that a form lists
NAMES_MAX = 100


class PreviewedRun(NamedTuple):
    """Parameter that a run at a logical time would get."""

    logical_ms: Millis
    #: with ‹secret NAME› for secrets; None: it could not be filled in
    text: str | None
    #: why it could not
    problem: str | None


def usable_placeholders(session: Session, group_id: int) -> list[str]:
    """Return the placeholders of stored variables and secrets that a job of the group may use, by name."""
    names = list_usable_names(session, group_id, limit=NAMES_MAX)
    return [placeholder(name, is_secret=is_secret) for name, is_secret in names]


def check_parameter(
    session: Session,
    text: str,
    group_id: int,
    *,
    with_secrets: bool,
    predecessors: Collection[str] | None = None,
) -> Template:
    """Return the template of a parameter; raise InvalidInput for one that no run of the group could have.

    ``with_secrets``: it is the job's own; one that is given with a trigger names no secrets.
    ``predecessors``: keys and ids of the jobs that the job runs after; None: any.
    """
    try:
        template = parse(text)
        names = template.names()
        check_names(
            template,
            KnownNames(
                variables={name for _, name in variables.find_values(session, names.variables, [group_id])},
                secrets=(
                    {name for _, name in variables.find_sealed(session, names.secrets, [group_id])}
                    if with_secrets
                    else None
                ),
                parents=names.parents if predecessors is None else predecessors,
            ),
        )
    except InvalidTemplate as exc:
        raise InvalidInput(PARAMETER, exc.message) from exc
    return template


def check_own(session: Session, text: str, group_id: int, predecessors: Collection[str]) -> None:
    """Raise InvalidInput for a parameter of a job that no run of the group could have.

    ``predecessors``: keys and ids of the jobs that the job runs after.
    """
    check_parameter(session, text, group_id, with_secrets=True, predecessors=predecessors)


def check_given(session: Session, text: str, group_id: int, own_texts: Mapping[int, str | None]) -> None:
    """Raise InvalidInput for a parameter that is given with a trigger.

    ``own_texts``: job id -> own parameter, of those of its jobs that fill it in. Secrets count only there.
    """
    if own_texts:
        is_own = all(own == text for own in own_texts.values())
        check_parameter(session, text, group_id, with_secrets=is_own)


def check_run_param(session: Session, job_id: int, group_id: int, text: str, form: ParamForm) -> None:
    """Raise InvalidInput for a parameter with which a run is triggered."""
    check_param(session, text, lambda: job_lists.find_params(session, [job_id])[job_id])
    if form is ParamForm.TEMPLATE and has_placeholders(text):
        check_given(session, text, group_id, job_lists.find_filling(session, [job_id]))


def check_param(session: Session, text: str, read_job_param: Callable[[], str | None]) -> None:
    """Check the parameter of a run; a longer one must be the job's own, which XXL-JOB 3.4 has stored."""
    if len(text) <= PARAM_MAX or text != read_job_param():
        limited_text(PARAMETER, text, PARAM_MAX)
    elif not (width := width_of(session, Fire, "executor_param")).holds(text):
        limited_text(PARAMETER, text, width.octets // CHARACTER_BYTES)


def has_placeholders(text: str | None) -> bool:
    """Whether a text may hold a placeholder or an escape of one."""
    return OPEN in (text or "")


class PreviewedJob(NamedTuple):
    """Job whose runs are previewed: stored, or as it is entered."""

    group_id: int
    #: None: not stored yet
    id: int | None
    name: str
    #: IANA name
    zone: str
    is_broadcast: bool
    #: it is run by hand, and not again
    has_no_parent: bool = False

    @classmethod
    def of(cls, job: Job) -> "PreviewedJob":
        """Return a stored job."""
        is_broadcast = job.executor_route_strategy == RouteStrategy.SHARDING_BROADCAST
        return cls(job.job_group, job.id, job.job_desc, job.time_zone or zone_name(), is_broadcast)

    @property
    def unknown(self) -> set[Unknown]:
        """Values that only its runs will have."""
        facts: set[Unknown] = {Fact.RUN_ID} if self.has_no_parent else {Fact.RUN_ID, *Origin}
        if self.id is None:
            facts.add(Fact.JOB_ID)
        if self.is_broadcast:
            facts |= {Fact.SHARD_INDEX, Fact.SHARD_TOTAL}
        return facts


def next_logical_times(schedule: Schedule, *, now_ms: Millis, count: int = PREVIEWED) -> list[Millis]:
    """Return the logical times of the next runs of a schedule; of one without instants that of a run now."""
    instants: list[Millis] = []
    if schedule.type not in (ScheduleType.NONE, ScheduleType.FIX_DELAY):
        try:
            check_schedule(schedule)
            instants = logical_times(schedule, next_times(schedule, now_ms, count))
        except ValueError:  # An incomplete schedule is shown at its own fields.
            pass
    return instants or [second_of(now_ms)]


def preview(
    session: Session,
    text: str,
    job: PreviewedJob,
    logical_times: Iterable[Millis],
    *,
    with_secrets: bool = True,
) -> list[PreviewedRun]:
    """Return what runs at these logical times would get; raises InvalidInput for a wrong template.

    What only the run itself will have, such as the result of a parent, is named: ``‹parent.result›``.
    """
    template = check_parameter(session, text, job.group_id, with_secrets=with_secrets)
    texts = variables.find_values(session, template.names().variables, [job.group_id])
    return [_preview(template, job, logical_ms, texts) for logical_ms in logical_times]


def preview_job(session: Session, job: Job, logical_times: Sequence[Millis]) -> list[PreviewedRun]:
    """Return what runs of a stored job would get; a parameter that is wrong now is a problem of each."""
    text = job.executor_param or ""
    if not job.fill_parameter:
        return [PreviewedRun(logical_ms, text, None) for logical_ms in logical_times]
    try:
        return preview(session, text, PreviewedJob.of(job), logical_times)
    except InvalidInput as exc:
        return [PreviewedRun(logical_ms, None, exc.message) for logical_ms in logical_times]


def _preview(
    template: Template, job: PreviewedJob, logical_ms: Millis, texts: Mapping[tuple[int, str], str]
) -> PreviewedRun:
    values = Values(
        logical_ms=logical_ms,
        time_zone=job.zone,
        job_id=job.id or 0,
        job_name=job.name,
        variables={name: value for (_, name), value in texts.items()},
    )
    try:
        return PreviewedRun(logical_ms, template.preview(values, job.unknown), None)
    except NotFilled as exc:
        return PreviewedRun(logical_ms, None, exc.message)
