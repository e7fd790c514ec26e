"""Forced runs: they take slots without being asked, and count for their value of `limit_key` as any other."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.limits.keys import key_for
from app.pipeline.retries import Slot
from app.store.limits import rules


def forced_slot(session: Session, job_id: int, param: str | None, now_ms: Millis) -> Slot:
    """Return the slots of a run with this parameter (None: the job's) that a user forces now."""
    return Slot(now_ms, keys_of_forced(session, [(job_id, param)])[0])


def keys_of_forced(session: Session, runs: Sequence[tuple[int, str | None]]) -> list[str]:
    """Return the key of each run, of a job and its parameter (None: the job's); one statement for all."""
    templates = rules.find_keys(session, {job_id for job_id, _ in runs}) if runs else {}
    keys = []
    for job_id, param in runs:
        template, own_param = templates.get(job_id, ("", ""))
        text = own_param if param is None else param
        keys.append((key_for(template, text) or "") if template else "")
    return keys
