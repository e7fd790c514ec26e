"""The child jobs of a job, as they are typed: ``"12,15"``."""

import re
from collections.abc import Callable, Collection, Mapping

from app.domain.texts import N_
from app.errors import InvalidInput

FIELD = "childJobId"
#: returns job id -> ids of its children, or of its parents, of those of the jobs that exist
Relatives = Callable[[Collection[int]], Mapping[int, Collection[int]]]


def parse_child_ids(text: str) -> list[int]:
    """Return the ids of a comma separated list; trailing commas are dropped, anything else that is no number is refused.

    Source: XXL-JOB 2.4.1 XxlJobServiceImpl (Java's ``split`` drops empty pieces at the end only).
    """
    pieces = text.rstrip(",").split(",") if text.strip() else []
    if text.strip() and not text.rstrip(","):
        return []
    for piece in pieces:
        if re.fullmatch(r"-?[0-9]{1,10}", piece) is None:
            raise InvalidInput(FIELD, N_("Child job id (%(id)s) is invalid", id=piece))
    return [int(piece) for piece in pieces]


def child_ids_text(ids: list[int]) -> str:
    """Write ids as they are stored."""
    return ",".join(str(job_id) for job_id in ids)


def leads_to(start: int, job_id: int, children_of: Relatives, parents_of: Relatives | None = None) -> bool:
    """Whether a success of the job ``start`` would sooner or later fire the job ``job_id``; a generation is asked for at once.

    With ``parents_of`` the way is looked for from both ends, and ends with the shorter one of them.
    """
    seen: set[int] = set()
    generation, older, ahead = {start}, {job_id}, {job_id}
    while generation and older:
        if not generation.isdisjoint(ahead):
            return True
        seen |= generation
        generation = {child for ids in children_of(generation).values() for child in ids} - seen
        if parents_of is not None:
            older = {parent for ids in parents_of(older).values() for parent in ids} - ahead
            ahead |= older
    return False


def not_found(job_id: int) -> InvalidInput:
    """Return the error for a child that does not exist, or not for this user."""
    return InvalidInput(FIELD, N_("Child job id (%(id)s) was not found", id=job_id))
