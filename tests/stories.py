"""Every line the pipeline stores is one the console can say in another language; else the pages would mix two."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from app.db import read_scope
from app.domain.story_lines import LINES, find_sentence
from app.models.log import JobLog

#: how our own lines begin; others are lines of an executor's text
HEADS = (
    "Trigger:",
    "Claimed:",
    "Addresses:",
    "Route:",
    "Probe ",
    "Sent to:",
    "Result: not",
    "Resolver:",
    ">>>",
    "Drained:",
)


def untold_lines() -> list[str]:
    """Return the lines of all stored stories that no template fits."""
    with read_scope() as session:
        stories = [story for story in session.scalars(select(JobLog.trigger_msg)) if story]
    own = {line for story in stories for line in story.splitlines() if line.startswith(HEADS)}
    return sorted(line for line in own if find_sentence(line, LINES) is None)


@pytest.fixture(autouse=True)
def told_stories(request: pytest.FixtureRequest) -> Iterator[None]:
    """Look through the stories a test has left."""
    stored = "database" in request.fixturenames
    if stored:
        request.getfixturevalue("database")
    yield
    if stored:
        assert untold_lines() == []
