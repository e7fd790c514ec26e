"""Steps of the tests of imports: a file is read and planned, then what was planned is written."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor
from app.domain.tasks import ResultLine
from app.services.code.apply import PreparedApply
from app.services.code.importing import ImportOptions, plan_lines, prepare_import, write_import
from app.services.code.job_file import read_file
from app.services.code.writing import Ids
from tests.services.code.steps import ADMIN, NETWORKS
from tests.support.factories import T0

OPTIONS = ImportOptions(networks=NETWORKS, file_name="jobs.yaml")


def prepare(
    document: Mapping[str, Any] | str,
    *,
    actor: Actor = ADMIN,
    with_switches: bool = False,
    now_ms: Millis = T0,
) -> PreparedApply:
    """Plan the import of the text of a file, or of a document or former file."""
    options = replace(OPTIONS, with_switches=with_switches)
    read = read_file(document if isinstance(document, str) else json.dumps(document))
    with read_scope() as session:
        prepared = prepare_import(session, read, options, actor=actor, now_ms=now_ms)
    return replace(prepared, plan_hash=prepared.plan.digest)


def planned(document: Mapping[str, Any] | str, **options: Any) -> list[ResultLine]:
    return plan_lines(prepare(document, **options).plans, Ids())


def write(prepared: PreparedApply, *, now_ms: Millis = T0) -> list[ResultLine]:
    with session_scope() as session:
        return write_import(session, prepared, file_name=OPTIONS.file_name, clock=lambda: now_ms)


def imported(document: Mapping[str, Any] | str, *, now_ms: Millis = T0, **options: Any) -> list[ResultLine]:
    return write(prepare(document, now_ms=now_ms, **options), now_ms=now_ms)


def outcomes(lines: list[ResultLine]) -> list[tuple[str, str]]:
    """Return the outcome for each key."""
    return [(line.name, line.outcome) for line in lines]
