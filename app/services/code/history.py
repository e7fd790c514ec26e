"""What applies changed of a job besides the fields of its versions: its switch, alarm channels and code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.code.change_sources import APPLY, UNDO, source_text
from app.domain.code.document import ALARM_CHANNELS, CODE, ENABLED
from app.domain.code.plan import Action
from app.models.managed import Apply
from app.services.code.stored import code_value
from app.store.accounts import audit
from app.store.jobs import managed
from app.store.jobs.managed import JOB

#: member -> (old, new)
Changes = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class CodeChange:
    """What an apply or its undoing changed of a job."""

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
    applies = managed.list_applies_of_job(session, job_id, limit=limit)
    found = [(each, changes) for each in applies if (changes := changes_of(each, job_id))]
    undone = {each.undone_ms for each, _changes in found if each.undone_ms}
    users = audit.find_users_at(session, "code.undo", undone)
    listed = [
        CodeChange(each.at_ms, each.username, source_text(APPLY, each.source), own) for each, own in found
    ]
    for each, own in found:
        if each.undone_ms:
            back = {name: (new, old) for name, (old, new) in own.items()}
            user = users.get(each.undone_ms, "")
            listed.append(CodeChange(each.undone_ms, user, source_text(UNDO, each.id), back))
    return listed


def changes_of(apply: Apply, job_id: int) -> Changes:
    """Return what an apply changed of a job besides its fields; of code its length and hash."""
    for each in json.loads(apply.before):
        if (each["kind"], each["id"]) == (JOB, job_id) and each["action"] != Action.DELETE:
            before, after = _shown(each["before"]), _shown(each["after"])
            pairs = {name: (before.get(name), after.get(name)) for name in (ENABLED, ALARM_CHANNELS, CODE)}
            return {name: pair for name, pair in pairs.items() if name in after and any(pair)}
    return {}


def _shown(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return members with the code as length and hash; a code without a source is left out."""
    found = dict(members)
    code = found.pop(CODE, None)
    if code and "source" in code:
        found[CODE] = code_value(code["language"], code["source"])
    elif code and "sha256" in code:
        found[CODE] = code
    return found
