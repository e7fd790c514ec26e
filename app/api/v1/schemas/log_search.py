"""Schemas: search of archived logs."""

from pydantic import Field

from app.api.v1.schemas.base import Instant, Listed, Schema
from app.api.v1.schemas.runs import RunSelection, State
from app.services.archive.search import QUERY_MAX


class LogSearchQuery(RunSelection):
    """What to search for, and in the logs of which runs."""

    q: str = Field(min_length=1, max_length=QUERY_MAX, description="Text of one line, or regular expression.")
    regex: bool = Field(
        False,
        description="`q` is a regular expression of Python, searched for in the first 4096 characters of each"
        " line.",
    )
    ignore_case: bool = Field(False, description="Upper and lower case are the same.")


class Mark(Schema):
    """A match in the text of a hit, counted in Unicode characters."""

    start: int = Field(description="Its first character, counted from 0.")
    end: int = Field(description="The one behind its last.")


class LogHit(Schema):
    """A line that matches."""

    run_id: str
    job_id: int
    group_id: int
    state: State
    started_at: Instant
    line: int = Field(description="Number of the line, counted from 1.")
    text: str = Field(description="The line, or of a longer one 1000 characters around its first match.")
    marks: list[Mark] = Field(description="The first matches in the text, at most 20.")
    cut: bool = Field(description="Whether the text is only a part of the line.")


class LogHits(Listed[LogHit]):
    """Lines that match, of the newest runs first, those of a run in their order."""

    searched_to: Instant | None = Field(
        description="Start of the run at which the next search goes on; null: there is none."
    )
