"""Sent parameters: what a run got for a template, and which run gave it values."""

from typing import NamedTuple

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.enums import ParamForm
from app.domain.parameters.errors import InvalidTemplate
from app.domain.parameters.marked_text import display
from app.domain.parameters.template import parse
from app.models.log import JobLog
from app.store.fires import earlier_runs
from app.store.runs import listing as log_lists


class RunParameter(NamedTuple):
    """Parameter of a run, for people."""

    #: what was sent, with ‹secret NAME› for secrets; of a run whose parameter was not filled in the template
    text: str
    #: the text was made of it; empty: it was sent as it is, or not filled in
    template: str = ""
    #: id of the run whose result or parameter stands in it; None: none, or it is not known any more
    giver_id: int | None = None
    #: whether the actor may see that run
    is_giver_visible: bool = False


def sent_text(log: JobLog) -> str | None:
    """Return what was sent with a run for its template, secrets only named; None: there is no such text."""
    return None if log.filled_param is None else display(log.filled_param)


def find_parameter(session: Session, log: JobLog, *, actor: Actor) -> RunParameter:
    """Return the parameter of a run; at most a statement per retry before it, and one for the giver."""
    text, template = sent_text(log), log.executor_param or ""
    if text is None or log.param_form != ParamForm.TEMPLATE:
        return RunParameter(template)
    giver_id = earlier_runs.find_parents(session, {log.id}).get(log.id) if _uses_parent(template) else None
    giver = log_lists.find_log(session, giver_id) if giver_id is not None else None
    is_visible = giver is not None and actor.may(giver.job_group, Right.VIEW)
    return RunParameter(text, template, giver_id, is_visible)


def _uses_parent(template: str) -> bool:
    try:
        return parse(template).names().uses_parent
    except InvalidTemplate:  # The log has only its beginning.
        return False
