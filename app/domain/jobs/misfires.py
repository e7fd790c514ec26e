"""Rules of the misfire strategy of a job: with what RUN_ALL goes."""

from typing import Final

from app.domain.enums import MisfireStrategy, ScheduleType, WhenFull
from app.domain.jobs.fields import FIELD_OF, JobDraft
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

STRATEGY: Final = FIELD_OF["misfire_strategy"].error_name
WITHOUT_JAVA = N_(
    "A Java admin on the same database would run none of the missed times (XXL_JOB_SHARED_WITH_JAVA)"
)


def check_misfire(draft: JobDraft) -> None:
    """Raise InvalidInput if all that was missed cannot run in order, with all errors."""
    if draft.misfire_strategy != MisfireStrategy.RUN_ALL:
        return
    errors = InputErrors()
    with errors:
        if draft.readable_by_java:
            raise InvalidInput(STRATEGY, WITHOUT_JAVA)
    with errors:
        if draft.schedule_type == ScheduleType.FIX_DELAY:
            problem = N_("A fixed delay misses one run at most; choose to run once now, or to do nothing")
            raise InvalidInput(STRATEGY, problem)
    with errors:
        if draft.when_full != WhenFull.WAIT:
            problem = N_(
                "To run all that was missed, runs have to wait for a slot; choose to wait, or another misfire"
                " strategy"
            )
            raise InvalidInput(FIELD_OF["when_full"].error_name, problem)
    errors.raise_all()
