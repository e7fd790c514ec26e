"""Checks of column widths: users widen those of jobs, and the copies of their texts must fit. Reads only."""

from sqlalchemy.orm import Session

from app.domain.runs.log_copies import UNLIMITED, Width
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.services.doctor.findings import Findings, fine, warning
from app.store.base.text_widths import find_widths
from app.store.fires.logs import COPIES

#: table -> columns with copies of those of jobs
COPIED = {JobLog.__tablename__: COPIES, Fire.__tablename__: ("executor_param",)}
#: longer ones are advised as TEXT
VARCHAR_MAX = 1_000
#: most bytes of the types of MySQL; PostgreSQL has one without a limit
TEXTS = {"text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
STATEMENTS = {
    "mysql": "ALTER TABLE {} MODIFY {} {}",
    "postgresql": "ALTER TABLE {} ALTER COLUMN {} TYPE {}",
}


def check_widths(session: Session) -> Findings:
    """Compare the columns with copies of texts of jobs with those of the jobs."""
    of_jobs, dialect = find_widths(session, Job.__tablename__), session.get_bind().dialect.name
    narrow = [
        (table, name, of_jobs.get(name, UNLIMITED))
        for table, names in COPIED.items()
        for widths in [find_widths(session, table)]
        for name in names
        if widths.get(name, UNLIMITED).characters < of_jobs.get(name, UNLIMITED).characters
    ]
    for table, name, width in narrow:
        statement = STATEMENTS[dialect].format(table, name, _type_for(width, dialect))
        yield warning(
            "columns",
            f"{table}.{name} is narrower than {Job.__tablename__}.{name}: longer texts are cut there",
            f"{statement}; then restart the workers",
        )
    if not narrow:
        yield fine("columns", "those with copies of job texts are as wide as the jobs'")


def _type_for(width: Width, dialect: str) -> str:
    if width.characters <= VARCHAR_MAX:
        return f"varchar({width.characters})"
    if dialect == "postgresql":
        return "text"
    return next(kind for kind, most in TEXTS.items() if width.octets <= most)
