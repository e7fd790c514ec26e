"""Rules of blackouts as entered: what each field may be."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from app.clock import LATEST_MS, SECOND_MS, Millis
from app.domain.calendars.blackouts import DURATION_MAX_S, Afterwards
from app.domain.enums import ScheduleType
from app.domain.jobs.tags import check_tag
from app.domain.schedules.schedule import MAX_CONF_LENGTH, Schedule, check_schedule, next_times
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import limited_text, required_text
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.calendar import REASON_MAX

WITHOUT_JAVA = N_("A Java admin on the same database would run jobs nevertheless (XXL_JOB_SHARED_WITH_JAVA)")
#: shortest window of a recurring blackout
DURATION_MIN_S: Final = 60
#: beginnings of a recurring one whose windows are compared
BEGINS: Final = 50
#: fields of the scope, of which one is given at most
SCOPES: Final = ("group_id", "job_id", "tag")
#: fields of a schedule -> those of a blackout
_FIELDS: Final = {"scheduleConf": "cron", "timeZone": "time_zone"}


@dataclass(frozen=True, slots=True)
class BlackoutDraft:
    """A blackout as entered."""

    reason: str = ""
    #: when it begins; None: now
    from_ms: Millis | None = None
    #: its end, exclusive; None: it has none
    to_ms: Millis | None = None
    #: when the windows of a recurring one begin; empty: it is on once
    cron: str = ""
    #: length of a window
    duration_s: int | None = None
    #: of the cron; empty: that of the installation
    time_zone: str = ""
    #: the group whose jobs it concerns; None: see the others, all jobs if none is given
    group_id: int | None = None
    job_id: int | None = None
    tag: str = ""
    #: Afterwards
    afterwards: str = Afterwards.SKIP.value
    #: refuse what a Java admin on the same database ignores (XXL_JOB_SHARED_WITH_JAVA)
    readable_by_java: bool = False

    @property
    def is_for_many(self) -> bool:
        """Whether it concerns jobs of all groups."""
        return self.group_id is None and self.job_id is None


def check_draft(draft: BlackoutDraft, *, now_ms: Millis) -> BlackoutDraft:
    """Return a blackout with its texts as stored; raises InvalidInput with the errors of all fields."""
    errors, reason, tag, time_zone = InputErrors(), "", "", ""
    with errors:
        if draft.readable_by_java:
            raise InvalidInput("reason", WITHOUT_JAVA)
        missing = N_("Enter a reason; refused runs show it")
        reason = " ".join(required_text("reason", draft.reason, REASON_MAX, missing).split())
    with errors:
        scopes = [name for name in SCOPES if getattr(draft, name)]
        if len(scopes) > 1:
            problem = N_("A blackout is for one executor group, one job or one tag; leave out the others")
            raise InvalidInput(scopes[1], problem)
    with errors:
        tag = _checked_tag(draft.tag)
    with errors:
        if draft.afterwards not in set(Afterwards):
            problem = N_(
                "'%(text)s' is not one of %(options)s",
                text=draft.afterwards,
                options=", ".join(Afterwards),
            )
            raise InvalidInput("afterwards", problem)
    with errors:
        time_zone = _check_windows(draft, now_ms)
    errors.raise_all()
    return replace(draft, reason=reason, tag=tag, cron=draft.cron.strip(), time_zone=time_zone)


def check_times(draft: BlackoutDraft, *, now_ms: Millis) -> tuple[Millis, Millis | None]:
    """Return beginning and end in whole seconds, the former not before now; raises InvalidInput."""
    from_ms = max(now_ms, (draft.from_ms or 0) // SECOND_MS * SECOND_MS)
    if from_ms >= LATEST_MS:
        raise InvalidInput("from", N_("The beginning lies too far ahead"))
    if draft.to_ms is None:
        return from_ms, None
    until_ms = -(-draft.to_ms // SECOND_MS) * SECOND_MS
    if until_ms <= now_ms:
        raise InvalidInput("to", N_("The end of a blackout must be in the future"))
    if until_ms <= from_ms:
        raise InvalidInput("to", N_("The end must be later than the beginning"))
    return from_ms, until_ms


def _checked_tag(text: str) -> str:
    if not text:
        return ""
    try:
        return check_tag(text)
    except InvalidInput as exc:
        raise InvalidInput("tag", exc.message) from exc


def _check_windows(draft: BlackoutDraft, now_ms: Millis) -> str:
    """Check the windows of a recurring blackout; return their zone, empty if it is on once."""
    if not draft.cron.strip():
        if draft.duration_s is not None:
            raise InvalidInput("cron", N_("Enter when the windows begin, such as 0 0 2 ? * SUN"))
        return ""
    time_zone = draft.time_zone or zone_name()
    schedule = Schedule(ScheduleType.CRON, draft.cron.strip(), time_zone)
    errors = InputErrors()
    limited_text("cron", draft.cron, MAX_CONF_LENGTH)
    try:
        check_schedule(schedule)
    except InvalidInput as exc:
        errors.errors += [InvalidInput(_FIELDS[error.field], error.message) for error in exc.errors]
    with errors:
        _check_duration(draft.duration_s)
    errors.raise_all()
    assert draft.duration_s is not None
    _check_apart(schedule, draft.duration_s, max(now_ms, draft.from_ms or 0))
    return time_zone


def _check_duration(duration_s: int | None) -> None:
    if duration_s is None or not DURATION_MIN_S <= duration_s <= DURATION_MAX_S:
        raise InvalidInput(
            "duration_s",
            N_(
                "%(field)s must lie between %(low)s and %(high)s",
                field="duration_s",
                low=DURATION_MIN_S,
                high=DURATION_MAX_S,
            ),
        )


def _check_apart(schedule: Schedule, duration_s: int, from_ms: Millis) -> None:
    """Raise InvalidInput unless there is time between the windows, which would have no end otherwise."""
    begins = next_times(schedule, min(from_ms, LATEST_MS) - 1, BEGINS)
    if not begins:
        raise InvalidInput("cron", N_("No window begins at any time to come"))
    shortest_ms = min((after - before for before, after in pairwise(begins)), default=None)
    if shortest_ms is not None and shortest_ms <= duration_s * SECOND_MS:
        problem = N_(
            "The next window would begin before one has ended, or at its end: at most %(limit)s seconds",
            limit=shortest_ms // SECOND_MS - 1,
        )
        raise InvalidInput("duration_s", problem)
