"""Every line the pipeline stores is one the console can say in another language; else the pages would mix two."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select

from app.db import read_scope
from app.domain.trace_templates import LINES, find_sentence
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


def unknown_lines() -> list[str]:
    """Return the lines of all stored traces that no template fits."""
    with read_scope() as session:
        traces = [trace for trace in session.scalars(select(JobLog.trigger_msg)) if trace]
    own = {line for trace in traces for line in trace.splitlines() if line.startswith(HEADS)}
    return sorted(line for line in own if find_sentence(line, LINES) is None)


@pytest.fixture(autouse=True)
def checked_traces(request: pytest.FixtureRequest) -> Iterator[None]:
    """Look through the traces a test has left."""
    stored = "database" in request.fixturenames
    if stored:
        request.getfixturevalue("database")
    yield
    if stored:
        assert unknown_lines() == []
