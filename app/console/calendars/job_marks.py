"""Marks of a job in the year of its calendar: on which days it runs, is moved or left out."""

from collections.abc import Mapping
from datetime import date

from app.console.calendars.year_view import JobMark
from app.models.job import Job


def marks_of(job: Job, year: int) -> Mapping[date, JobMark]:
    """Return what becomes of the instants of a job in a year, by their days."""
    return {}
