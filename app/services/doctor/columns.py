"""Checks of column widths: users widen those of jobs, and the copies of their texts must fit. Reads only."""

from sqlalchemy.orm import Session

from app.database.dialects.choice import dialect_of
from app.domain.runs.log_copies import UNLIMITED
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.services.doctor.findings import Findings, NothingFound, check, warning
from app.store.base.text_widths import find_attributes, find_widths
from app.store.fires.logs import COPIES

#: table -> columns with copies of those of jobs
COPIED = {JobLog.__tablename__: COPIES, Fire.__tablename__: ("executor_param",)}


@check("columns")
def check_widths(session: Session) -> Findings:
    """Compare the columns with copies of texts of jobs with those of the jobs."""
    of_jobs, dialect = find_widths(session, Job.__tablename__), dialect_of(session)
    narrow = [
        (table, name, of_jobs.get(name, UNLIMITED))
        for table, names in COPIED.items()
        for widths in [find_widths(session, table)]
        for name in names
        if widths.get(name, UNLIMITED).characters < of_jobs.get(name, UNLIMITED).characters
    ]
    for table, name, width in narrow:
        statement = dialect.widening(table, name, characters=width.characters, octets=width.octets)
        attributes = find_attributes(session, table, name)
        yield warning(
            f"{table}.{name} is narrower than {Job.__tablename__}.{name}: longer texts are cut there",
            f"{statement}{attributes}; then restart console and workers",
        )
    yield NothingFound("those with copies of job texts are as wide as the jobs'")
