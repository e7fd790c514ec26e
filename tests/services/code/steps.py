"""Steps of the tests of jobs as code: a document, its plan and its apply, as an administrator."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from typing import Any

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor
from app.domain.code.document import read_document
from app.domain.code.plan import Plan
from app.services.code.apply import ApplyResult, PreparedApply, apply_document, prepare_apply
from app.services.code.plan import plan_document
from app.services.code.request import CodeRequest
from tests.support.factories import T0

ADMIN = Actor(user_id=0, username="ci", is_admin=True, via="token ci")
#: those of the addresses in ``tests.support.factories``
NETWORKS = (ip_network("127.0.0.0/8"),)
#: a minimal job
CLOSE = {"description": "Close the books", "handler": "closeHandler", "owner": "ann"}
NIGHTLY = {"schedule_type": "CRON", "schedule": "0 0 2 * * ?"}


def request(document: Mapping[str, Any], *, actor: Actor = ADMIN, prune: Sequence[str] = ()) -> CodeRequest:
    """Return the request for a document as clients send it."""
    sections = [document.get(name, {}) for name in ("groups", "jobs", "channels", "calendars")]
    return CodeRequest(read_document(*sections), actor, prune, NETWORKS)


def plan(
    document: Mapping[str, Any],
    *,
    actor: Actor = ADMIN,
    prune: Sequence[str] = (),
    now_ms: Millis = T0,
) -> Plan:
    with read_scope() as session:
        return plan_document(session, request(document, actor=actor, prune=prune), now_ms=now_ms).summary


def apply(
    document: Mapping[str, Any],
    *,
    actor: Actor = ADMIN,
    prune: Sequence[str] = (),
    now_ms: Millis = T0,
    plan_hash: str | None = None,
    source: str = "infra@1a2b3c",
) -> ApplyResult:
    prepared = prepare(document, actor=actor, prune=prune, now_ms=now_ms, plan_hash=plan_hash)
    return write(prepared, now_ms=now_ms, source=source)


def prepare(
    document: Mapping[str, Any],
    *,
    actor: Actor = ADMIN,
    prune: Sequence[str] = (),
    now_ms: Millis = T0,
    plan_hash: str | None = None,
) -> PreparedApply:
    asked = request(document, actor=actor, prune=prune)
    with read_scope() as session:
        return prepare_apply(session, asked, plan_hash=plan_hash, now_ms=now_ms)


def write(prepared: PreparedApply, *, now_ms: Millis = T0, source: str = "infra@1a2b3c") -> ApplyResult:
    with session_scope() as session:
        return apply_document(session, prepared, source=source, clock=lambda: now_ms)


def shown(found: Plan) -> list[tuple[str, str, str, list[str]]]:
    """Return kind, key, action and changed fields of each object."""
    return [
        (each.kind, each.key, each.action.value, [change.field for change in each.fields])
        for each in found.objects
    ]
