"""Helpers of the tests of code, for all that need them."""

from typing import Any

from sqlalchemy import update

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor
from app.models.code import CodeObject
from app.models.group import Group
from app.models.job import Job
from app.services.code.drift import DriftedObject, find_drift
from app.services.code.export import export_document
from app.services.code.undo import PreparedUndo, prepare_undo, undo_apply
from app.services.code.undo_plans import UndoRequest
from tests.services.code.steps import ADMIN, CLOSE, NETWORKS, NIGHTLY, apply
from tests.support.factories import T0, all_rows, only_row

WHOLE: dict[str, Any] = {
    "groups": {"sample": {"title": "Sample", "address_type": "automatic"}},
    "jobs": {
        "sample/close": {**CLOSE, **NIGHTLY, "enabled": True, "children": ["mail"], "tags": ["money"]},
        "sample/mail": {
            "description": "Mail the report",
            "owner": "ann",
            "code": {"language": "GLUE_SHELL", "source": "echo mail\n", "remark": "first version"},
            "alarm_channels": ["Ops"],
        },
    },
    "channels": {"Ops": {"kind": "mail", "settings": {"addresses": "ops@example.com"}}},
}


def prepare(apply_id: int, *, forced: bool = False, actor: Actor = ADMIN) -> PreparedUndo:
    with read_scope() as session:
        return prepare_undo(session, UndoRequest(apply_id, actor, forced, NETWORKS), now_ms=T0)


def write(prepared: PreparedUndo, *, now_ms: Millis = T0) -> None:
    with session_scope() as session:
        undo_apply(session, prepared, clock=lambda: now_ms)


def undo(apply_id: int, *, forced: bool = False, actor: Actor = ADMIN, now_ms: Millis = T0) -> None:
    write(prepare(apply_id, forced=forced, actor=actor), now_ms=now_ms)


def exported() -> Any:
    with read_scope() as session:
        return export_document(session, actor=ADMIN, is_whole=True).document


def managed() -> list[tuple[str, str, int, str]]:
    rows = all_rows(CodeObject)
    return sorted((row.kind, row.managed_key, row.object_id, row.fields) for row in rows)


def drift(*, actor: Actor = ADMIN) -> list[DriftedObject]:
    with read_scope() as session:
        return find_drift(session, actor=actor)


def rename(column: Any, name: str, *, to: str) -> None:
    with session_scope() as session:
        session.execute(update(column.class_).where(column == name).values({column.key: to}))


JOB = {**CLOSE, **NIGHTLY, "enabled": True}


def files(app_name: str, *names: str, **members: Any) -> dict[str, Any]:
    jobs = {f"{app_name}/{name}": {**JOB, "description": name, **members} for name in names}
    return {"groups": {app_name: {"title": "Sample"}}, "jobs": jobs}


def move(job_id: int, *, to: Group) -> None:
    rename(Job.job_group, only_row(Job, id=job_id).job_group, to=to.id)


def renamed(*names: str) -> None:
    """Apply jobs of the group sample, which is then renamed to samples."""
    apply(files("sample", *names))
    rename(Group.app_name, "sample", to="samples")


def owned_ids() -> dict[str, int]:
    return {key: object_id for _kind, key, object_id, _fields in managed()}
