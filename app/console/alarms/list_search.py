"""Search field of the inbox of alarms: filters that can be typed, and a job by its name."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.console.ui.labels import ALARM_RESULTS
from app.console.ui.lists.job_search import job_field, with_job
from app.console.ui.lists.search import Search, choice_field, read_terms
from app.console.ui.lists.time_search import range_fields
from app.console.web.language import _
from app.domain.access.permissions import Actor
from app.models.channel import AlarmChannel


def read_alarm_search(
    session: Session, text: str, channels: Sequence[AlarmChannel], *, actor: Actor
) -> Search:
    """Return what a text means to a reader who sees these channels."""
    names = {str(channel.id): channel.name for channel in channels}
    fields = (
        job_field(),
        *([choice_field("channel", ("channel", _("Channel")), names)] if names else []),
        choice_field("result", ("result", "state", _("Result")), result_titles()),
        *range_fields(),
    )
    return with_job(session, read_terms(text, fields), actor=actor)


def result_titles() -> dict[str, str]:
    """Return result -> title, of those that the list can be filtered by."""
    return {result.value: str(title) for result, title in ALARM_RESULTS.items() if result}
