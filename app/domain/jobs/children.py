"""Child jobs of a job, as users enter them: ``"12,15"``."""

import re

from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

FIELD = "childJobId"


def parse_child_ids(text: str) -> list[int]:
    """Return the ids of a comma separated list; raise InvalidInput.

    Trailing commas are ignored. Source: XXL-JOB 2.4.1 XxlJobServiceImpl (Java's ``split`` drops empty pieces
    at the end only).
    """
    pieces = text.rstrip(",").split(",") if text.strip() else []
    if text.strip() and not text.rstrip(","):
        return []
    errors = InputErrors()
    for piece in pieces:
        with errors:
            if re.fullmatch(r"-?[0-9]{1,10}", piece) is None:
                raise InvalidInput(FIELD, N_("Child job id (%(id)s) is invalid", id=piece))
    errors.raise_all()
    return [int(piece) for piece in pieces]


def child_ids_of(text: str | None) -> list[int]:
    """Return the ids in a column `child_jobid`; ignore pieces that are not numbers."""
    return [int(piece) for piece in (text or "").split(",") if piece.isascii() and piece.isdigit()]


def child_ids_text(ids: list[int]) -> str:
    """Return ids as they are stored."""
    return ",".join(str(job_id) for job_id in ids)


def not_found(job_id: int) -> InvalidInput:
    """Return the error for a child job that does not exist or is not visible to the user."""
    return InvalidInput(FIELD, N_("Child job id (%(id)s) was not found", id=job_id))


def valid_children(text: str | None, job_id: int) -> list[int]:
    """Return the valid ids in a column `child_jobid` of a job, each once."""
    ids = (child_id(name, job_id) for name in (text or "").split(","))
    return list(dict.fromkeys(child for child in ids if child))


def child_id(name: str, job_id: int) -> int | None:
    """Return the job id in a part of `child_jobid`, or None; a job is never its own child."""
    name = name.strip()
    child = int(name) if name.isascii() and name.isdigit() else 0
    return child if 0 < child < 2**31 and child != job_id else None
