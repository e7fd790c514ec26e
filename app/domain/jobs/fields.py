"""Job fields: the one table behind the job form, the JSON endpoints and the draft.

A new attribute of a job takes five files: a line of ``JobDraft`` here, which names its section of the form,
one of ``MEMBERS`` in ``members``, a column of the model, its migration, and its name in
``executor_client.code.members``. What the page of a job says of it stands in ``jobs/_definition.html``, and
``handlers.declarations`` of the client has the attributes of jobs declared in code. Most fields are plain:
only their kind and limits are checked. A field with ``has_own_rules`` belongs to the group, the schedule, the
code or the child jobs of a job; their rules and form inputs are written by hand.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from app.clock import Millis
from app.domain.archive.kinds import ArchiveChoice
from app.domain.enums import (
    BlockStrategy,
    Delivery,
    GlueType,
    MisfireStrategy,
    RouteStrategy,
    ScheduleType,
    WhenFull,
)
from app.domain.jobs import structure_models
from app.domain.jobs.children import FIELD as CHILDREN
from app.domain.jobs.job_field import JobField, Kind
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: longest GLUE source, in characters
SOURCE_MAX = 500_000
#: most days that are kept
DAYS_MAX = 36_500


def _text(wire_name: str, label: str = "", **limits: Any) -> Any:
    return _declare(JobField(Kind.TEXT, wire_name, label=label, **limits))


def _choice(wire_name: str, label: str, choices: type[StrEnum], invalid: str, **limits: Any) -> Any:
    return _declare(JobField(Kind.CHOICE, wire_name, label=label, choices=choices, invalid=invalid, **limits))


def _number(wire_name: str, label: str = "", **limits: Any) -> Any:
    return _declare(JobField(Kind.NUMBER, wire_name, label=label, **{"default": 0, **limits}))


def _flag(label: str, **options: Any) -> Any:
    return _declare(JobField(Kind.BOOLEAN, "", label=label, default=0, is_original=False, **options))


def _structure(label: str, model: Callable[[], Any], default: str, hint: str) -> Any:
    return _declare(
        JobField(Kind.STRUCTURE, "", label=label, model=model, default=default, hint=hint, is_original=False)
    )


def _instant() -> Any:
    return _declare(JobField(Kind.INSTANT, "", default=0, is_original=False, has_own_rules=True))


def _declare(job_field: JobField) -> Any:
    return field(default=job_field.default, metadata={"job_field": job_field})


@dataclass(frozen=True, slots=True)
class JobDraft:
    """Job draft: values a user entered, neither checked nor trimmed yet."""

    job_group: int = _number("jobGroup", has_own_rules=True)
    job_desc: str = _text(
        "jobDesc", N_("Job description"), max_length=255, missing=N_("Enter a job description")
    )
    author: str = _text("author", N_("Owner"), max_length=64, missing=N_("Enter an owner"))
    alarm_email: str = _text(
        "alarmEmail",
        N_("Alarm mail"),
        max_length=255,
        hint=N_("Several addresses are separated by commas."),
    )
    schedule_type: str = _choice(
        "scheduleType",
        N_("Schedule type"),
        ScheduleType,
        N_("Schedule type is invalid"),
        has_own_rules=True,
    )
    schedule_conf: str = _text("scheduleConf", has_own_rules=True)
    time_zone: str = _text("timeZone", is_original=False, has_own_rules=True)
    not_before_ms: Millis = _instant()
    not_after_ms: Millis = _instant()
    glue_type: str = _choice(
        "glueType", N_("Run mode"), GlueType, N_("Run mode is invalid"), has_own_rules=True
    )
    glue_source: str = _text("glueSource", max_length=SOURCE_MAX, has_own_rules=True)
    glue_remark: str = _text("glueRemark", max_length=128, has_own_rules=True)
    executor_handler: str = _text(
        "executorHandler",
        "JobHandler",
        max_length=255,
        hint=N_("The name under which the executor registers the handler."),
    )
    executor_param: str = _text(
        "executorParam",
        N_("Job parameter"),
        max_length=2_048,
        keeps_blanks=True,
        is_multiline=True,
        is_wide=True,
    )
    #: 1: placeholders of the parameter are filled in before a run is sent
    fill_parameter: int = _flag(
        N_("Fill in placeholders"),
        hint=N_("Otherwise ${…} is sent as it is."),
    )
    executor_route_strategy: str = _choice(
        "executorRouteStrategy", N_("Route strategy"), RouteStrategy, N_("Route strategy is invalid")
    )
    #: comma separated ids
    child_jobid: str = _text(
        CHILDREN,
        N_("Child job ids"),
        max_length=255,
        has_own_rules=True,
        hint=N_("Ids of jobs that run after a success, separated by commas."),
    )
    misfire_strategy: str = _choice(
        "misfireStrategy",
        N_("Misfire strategy"),
        MisfireStrategy,
        N_("Misfire strategy is invalid"),
        hint=N_("What to do with runs that missed their scheduled time."),
    )
    misfire_max: int = _number(
        "misfireMax",
        N_("Most missed runs"),
        default=100,
        low=1,
        high=1_000,
        is_original=False,
        hint=N_("The newest run, one after the other; the others are skipped."),
    )
    misfire_max_age_s: int = _number(
        "misfireMaxAgeS",
        N_("Oldest missed run"),
        default=86_400,
        low=1,
        high=30 * 86_400,
        is_original=False,
        hint=N_("Seconds; those that were due earlier are skipped."),
    )
    executor_block_strategy: str = _choice(
        "executorBlockStrategy",
        N_("Block strategy"),
        BlockStrategy,
        N_("Block strategy is invalid"),
        hint=N_("What an instance does while it runs this job. All instances together: Limits and waiting."),
    )
    #: seconds; 0: none
    executor_timeout: int = _number(
        "executorTimeout",
        N_("Timeout"),
        negative_is_zero=True,
        hint=N_("Seconds; 0: no timeout."),
    )
    executor_fail_retry_count: int = _number(
        "executorFailRetryCount",
        N_("Retries after a failure"),
        high=9_999,
        negative_is_zero=True,
        hint=N_("0: no retries."),
    )
    retry_interval_s: int = _number(
        "retryIntervalS",
        N_("Retry delay"),
        high=86_400,
        is_original=False,
        hint=N_("Seconds before the first retry; 0: at once."),
    )
    retry_backoff_percent: int = _number(
        "retryBackoffPercent",
        N_("Backoff factor"),
        default=100,
        low=100,
        high=1_000,
        is_original=False,
        hint=N_(
            "In percent. 100: all retries wait equally long; 200: each waits twice as long as the one before,"
            " a day at most."
        ),
    )
    delivery: str = _choice(
        "delivery",
        N_("Redelivery"),
        Delivery,
        N_("Redelivery is invalid"),
        default=Delivery.AUTO.value,
        section="retries",
        is_wide=True,
        is_original=False,
        hint=N_("Whether to send a run again when contact was lost and it may or may not have started."),
    )
    #: JSON text
    promises: str = _structure(
        N_("Promises"), structure_models.promises, "[]", N_("What is reported although no run has failed.")
    )
    #: JSON text
    escalation: str = _structure(
        N_("Escalation"), structure_models.escalation, "null", N_("For incidents that are not acknowledged.")
    )
    max_running: int = _number(
        "maxRunning",
        N_("Most runs at once"),
        high=10_000,
        section="limits",
        is_original=False,
        hint=N_("On all instances together; 0: no limit."),
    )
    when_full: str = _choice(
        "whenFull",
        N_("When there is no slot"),
        WhenFull,
        N_("This is no answer to a full limit"),
        default=WhenFull.WAIT.value,
        section="limits",
        is_original=False,
        hint=N_("What becomes of a run that would be one too many."),
    )
    priority: int = _number(
        "priority",
        N_("Priority"),
        default=5,
        low=1,
        high=9,
        section="limits",
        is_original=False,
        hint=N_("Of waiting runs: 9 is first. Ten minutes of waiting count as much as one step."),
    )
    max_wait_s: int = _number(
        "maxWaitS",
        N_("Longest wait"),
        high=31 * 86_400,
        section="limits",
        is_original=False,
        hint=N_("Seconds, then the run is skipped; 0: it waits for as long as it takes."),
    )
    limit_key: str = _text(
        "limitKey",
        N_("Limit for each"),
        max_length=255,
        section="limits",
        is_original=False,
        hint=N_(
            "Counts the runs for each value by itself, such as ${param.customer}: the member customer of the"
            " parameter."
        ),
    )
    #: JSON text
    limits: str = _structure(
        N_("Named limits"),
        structure_models.limits,
        "[]",
        N_("Limits that several jobs share, with the slots of a run."),
    )
    #: JSON text
    runs_after: str = _structure(
        N_("Runs after"), structure_models.runs_after, "null", N_("Runs when other jobs have ended.")
    )
    #: JSON text
    calendar: str = _structure(
        N_("Calendar"),
        structure_models.calendar,
        "null",
        N_("Runs its schedule only on workdays, or only on holidays."),
    )
    log_archive: str = _choice(
        "logArchive",
        N_("Log archive"),
        ArchiveChoice,
        N_("Log archive is invalid"),
        section="archive",
        is_original=False,
        hint=N_("Of which runs the console keeps the log, so that it outlives the executor."),
    )
    log_days: int = _number(
        "logDays",
        N_("Days of archived logs"),
        high=DAYS_MAX,
        section="archive",
        is_original=False,
        hint=N_("0: as many as the executor or the console keeps."),
    )
    run_days: int = _number(
        "runDays",
        N_("Days of runs"),
        high=DAYS_MAX,
        section="archive",
        is_original=False,
        hint=N_("Three at least; 0: as many as the executor or the console keeps."),
    )
    #: None: unchanged; none for a new job
    tags: tuple[str, ...] | None = None
    #: refuse a schedule that a Java admin on the same database cannot read (XXL_JOB_SHARED_WITH_JAVA)
    readable_by_java: bool = field(default=False, compare=False)
    #: errors of inputs that could not be read; refused together with the others
    unreadable: tuple[InvalidInput, ...] = field(default=(), compare=False)


def _read_table() -> tuple[JobField, ...]:
    members = ((member.name, member.metadata.get("job_field")) for member in fields(JobDraft))
    return tuple(replace(job_field, attribute=name) for name, job_field in members if job_field is not None)


#: a new job, where nothing else is entered
DEFAULTS = JobDraft(
    schedule_type=ScheduleType.NONE.value,
    misfire_strategy=MisfireStrategy.DO_NOTHING.value,
    executor_route_strategy=RouteStrategy.FIRST.value,
    executor_block_strategy=BlockStrategy.SERIAL_EXECUTION.value,
    glue_type=GlueType.BEAN.value,
)
#: every job field, in the order of the form
JOB_FIELDS = _read_table()
#: those of which only kind and limits are checked
PLAIN_FIELDS = tuple(job_field for job_field in JOB_FIELDS if not job_field.has_own_rules)
#: attribute -> field
FIELD_OF = {job_field.attribute: job_field for job_field in JOB_FIELDS}


def plain_fields(kind: Kind) -> tuple[JobField, ...]:
    """Return the plain fields of one kind."""
    return tuple(job_field for job_field in PLAIN_FIELDS if job_field.kind is kind)
