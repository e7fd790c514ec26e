"""Corrections of counted days: a run that was unresolved got a result. docs/reference/completeness.md, 5."""

from collections.abc import Iterable

from sqlalchemy.orm import Session

from app.domain.completeness.days import day_of
from app.domain.enums import TriggerCode
from app.domain.runs.logical_times import logical_of
from app.domain.schedules.schedule import zone
from app.models.base import zone_name
from app.store.completeness.days import DayKey, mark_changed
from app.store.fires.logs import RunState


def correct_days(session: Session, runs: Iterable[RunState]) -> None:
    """Let the days of runs that were unresolved be counted again."""
    tz = zone(zone_name())
    days = {
        DayKey(run.job_id, day_of(logical_ms, tz).isoformat())
        for run in runs
        if run.trigger_code == TriggerCode.UNRESOLVED and (logical_ms := logical_of(run)) is not None
    }
    if days:
        mark_changed(session, days)
