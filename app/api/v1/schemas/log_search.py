"""Schemas: search of archived logs."""

from typing import Literal

from pydantic import Field

from app.api.v1.schemas.base import Id, Instant, Listed, ListQuery, Schema
from app.api.v1.schemas.runs import State
from app.services.archive.search import QUERY_MAX


class LogSearchQuery(ListQuery):
    """What to search for, and in the logs of which runs."""

    q: str = Field(min_length=1, max_length=QUERY_MAX, description="Text of one line, or regular expression.")
    regex: bool = Field(
        False,
        description="`q` is a regular expression of Python, searched for in the first 4096 characters of each"
        " line.",
    )
    ignore_case: bool = Field(False, description="Upper and lower case are the same.")
    job_id: Id | None = Field(None, description="Runs of this job.")
    group_id: Id | None = Field(None, description="Runs of the jobs of this executor group.")
    state: Literal[State, "unsuccessful"] | None = Field(
        None, description="Runs in this state; `unsuccessful`: all that ended without success."
    )
    from_ms: Instant | None = Field(None, alias="from", description="Runs that started then or later.")
    to_ms: Instant | None = Field(None, alias="to", description="Runs that started then or earlier.")


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
