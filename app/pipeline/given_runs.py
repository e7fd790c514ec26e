"""Runs that give their results and parameters to later ones."""

from app.domain.parameters.marked_text import unmark
from app.domain.parameters.values import GivenRun
from app.domain.runs.trigger_report import result_of
from app.store.fires import earlier_runs


def given_run(run: earlier_runs.GivenRow) -> GivenRun:
    """Return what a run gives; only a success has a result."""
    result = result_of(run.message) if run.is_success else None
    return GivenRun(run.log_id, result, run.template if run.marked_text is None else unmark(run.marked_text))
