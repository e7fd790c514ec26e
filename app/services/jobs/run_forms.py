"""Run once by a form: a form that is sent twice queues one run, and leads to it again."""

import json
from hashlib import sha256

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.access.permissions import Actor
from app.domain.runs.trigger_keys import Trigger, parse_id
from app.services.jobs.triggers import ALONE, InChain, trigger_job
from app.store.nodes import idempotency

#: how long a form is remembered after it was sent
KEPT_MS: Millis = DAY_MS


def trigger_by_form(
    session: Session,
    job_id: int,
    *,
    form_key: str,
    executor_param: str,
    address_list: str,
    actor: Actor,
    now_ms: Millis,
    repeats: int | None = None,
    due_ms: Millis | None = None,
    logical_ms: Millis | None = None,
    force: bool = False,
    in_chain: InChain = ALONE,
) -> tuple[Trigger, bool]:
    """Queue a run as ``trigger_job`` does; return its trigger, and False where the same form has queued it.

    ``due_ms`` None: now; ``logical_ms`` None: the second in which it is due. ``form_key``: with the same
    user, job and entered values it makes the same run. ``in_chain``: chain and round, as a value of the form.
    """
    values = json.dumps([job_id, executor_param, address_list, repeats, due_ms, logical_ms, force, *in_chain])
    key_hash = sha256(f"form:{actor.user_id}:{form_key}:{values}".encode()).hexdigest()
    lasts = {"kept_ms": KEPT_MS, "open_ms": KEPT_MS}
    if not idempotency.insert_key(session, key_hash, "", now_ms=now_ms, **lasts):
        earlier = parse_id(idempotency.get_key(session, key_hash).location)
        assert earlier is not None  # The run is queued in the transaction that stores its key.
        return earlier, False
    run = trigger_job(
        session,
        job_id,
        executor_param=executor_param,
        address_list=address_list,
        actor=actor,
        now_ms=now_ms,
        repeats=repeats,
        due_ms=due_ms,
        logical_ms=logical_ms,
        force=force,
        in_chain=in_chain,
    )
    idempotency.update_answer(session, key_hash, status=303, location=run.trigger.id, body="")
    return run.trigger, True
