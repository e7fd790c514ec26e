"""History of applies: their changes of a job that versions lack, to its switch, alarm channels and code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.code.change_sources import APPLY, UNDO, source_text
from app.domain.code.document import ALARM_CHANNELS, CODE, ENABLED
from app.domain.code.plan import Action
from app.models.code import Apply
from app.services.code.state import code_value
from app.store.accounts import audit
from app.store.jobs import managed_objects
from app.store.jobs.managed_objects import JOB

#: member -> (old, new)
Changes = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class CodeChange:
    """Changes of a job by an apply or its undo."""

    at_ms: Millis
    #: empty: not known
    username: str
    #: as in versions: ``apply infra@1a2b3c``, ``undo of apply 3``
    source: str
    changes: Changes


def list_code_changes(session: Session, job_id: int, *, limit: int) -> list[CodeChange]:
    """Return what the newest applies changed of a job besides its fields; at most two statements.

    The caller has checked that the job may be seen.
    """
    applies = managed_objects.list_applies_of_job(session, job_id, limit=limit)
    rows = [(apply, changes) for apply in applies if (changes := changes_of(apply, job_id))]
    undone = {apply.undone_ms for apply, _changes in rows if apply.undone_ms}
    users = audit.find_users_at(session, "code.undo", undone)
    code_changes = [
        CodeChange(apply.at_ms, apply.username, source_text(APPLY, apply.source), changes)
        for apply, changes in rows
    ]
    for apply, changes in rows:
        if apply.undone_ms:
            back = {name: (new, old) for name, (old, new) in changes.items()}
            user = users.get(apply.undone_ms, "")
            code_changes.append(CodeChange(apply.undone_ms, user, source_text(UNDO, apply.id), back))
    return code_changes


def changes_of(apply: Apply, job_id: int) -> Changes:
    """Return what an apply changed of a job besides its fields; of code its length and hash."""
    for change in json.loads(apply.before):
        if (change["kind"], change["id"]) == (JOB, job_id) and change["action"] != Action.DELETE:
            before, after = _without_source(change["before"]), _without_source(change["after"])
            pairs = {name: (before.get(name), after.get(name)) for name in (ENABLED, ALARM_CHANNELS, CODE)}
            return {name: pair for name, pair in pairs.items() if name in after and any(pair)}
    return {}


def _without_source(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return members with the code as length and hash; a code without a source is left out."""
    values = dict(members)
    code = values.pop(CODE, None)
    if code and "source" in code:
        values[CODE] = code_value(code["language"], code["source"])
    elif code and "sha256" in code:
        values[CODE] = code
    return values
