"""API: jobs as code."""

import json
from functools import cache
from typing import Any

from flask import Response

from app.api.v1.cursors import BIG_ID, cut, read_id_cursor
from app.api.v1.endpoint import ADMIN, PUBLIC, Call, Resource
from app.api.v1.schemas.base import Listed, ListQuery
from app.api.v1.schemas.code import (
    CodeApplied,
    CodeApplyIn,
    CodeApplyListed,
    CodeDocument,
    CodeDrift,
    CodeExport,
    CodeExportQuery,
    CodePlan,
    CodePlanIn,
    CodeUndoIn,
    DriftedObject,
    PlannedField,
)
from app.clock import now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.domain.code.document import read_document
from app.domain.code.plan import Plan
from app.services.code import drift
from app.services.code.apply import PreparedApply, apply_document, prepare_apply
from app.services.code.export import export_document
from app.services.code.plan import plan_document
from app.services.code.request import CodeRequest
from app.services.code.undo import PreparedUndo, prepare_undo, undo_apply
from app.services.code.undo_plans import UndoRequest
from app.store.jobs import managed_objects

resource = Resource(
    "code",
    "Jobs as code: groups, jobs and alarm channels are made as a document says. A field that the document"
    " names is owned by code; the others belong to the console.",
)


@resource.post("/code/plan", body=CodePlanIn, answer=CodePlan, transaction=False)
def plan_code(call: Call, body: CodePlanIn) -> CodePlan:
    """Return what applying a document would change, field by field, and when jobs would run."""
    request = _request(call, body)
    with read_scope() as session:
        return _plan(plan_document(session, request, now_ms=call.now_ms).summary)


def _prepare_apply(call: Call, body: CodeApplyIn) -> tuple[PreparedApply, CodePlan]:
    request = _request(call, body)
    with read_scope() as session:
        prepared_apply = prepare_apply(session, request, plan_hash=body.plan_hash, now_ms=call.now_ms)
    return prepared_apply, _plan(prepared_apply.plan)


@resource.post("/code/apply", body=CodeApplyIn, answer=CodeApplied, right=Right.EDIT, prepare=_prepare_apply)
def apply_code(call: Call, body: CodeApplyIn, preparation: tuple[PreparedApply, CodePlan]) -> CodeApplied:
    """Make everything as a document says, in one transaction with one entry in the audit."""
    prepared_apply, plan_answer = preparation
    result = apply_document(call.session, prepared_apply, source=body.source, clock=now_ms)
    plan = plan_answer if result.plan is prepared_apply.plan else _plan(result.plan)
    return CodeApplied(apply_id=result.apply_id or None, plan=plan)


@resource.get("/code/drift", answer=CodeDrift)
def get_drift(call: Call) -> CodeDrift:
    """List the managed objects that were changed or deleted elsewhere since they were applied."""
    return CodeDrift(
        items=[
            DriftedObject(
                kind=item.kind,  # type: ignore[arg-type]
                key=item.key,
                id=item.object_id,
                is_gone=item.is_gone,
                source=item.source,
                applied_at=item.applied_ms,
                fields=[PlannedField.model_validate(field.as_json()) for field in item.fields],
            )
            for item in drift.find_drift(call.session, actor=call.actor)
        ]
    )


@resource.get("/code/export", answer=CodeExport, query=CodeExportQuery)
def export_code(call: Call) -> CodeExport:
    """Return groups, jobs and channels as a document that makes the same ones elsewhere."""
    names = [name.strip() for name in call.query.groups.split(",") if name.strip()]
    job_ids = [int(word) for word in call.query.jobs.split(",") if word]
    export = export_document(
        call.session, actor=call.actor, app_names=names, job_ids=job_ids, is_whole=call.query.whole
    )
    return CodeExport(document=dict(export.document), variables=export.variables, notes=export.notes)


@resource.get("/code/applies", answer=Listed[CodeApplyListed], query=ListQuery, right=ADMIN)
def list_applies(call: Call) -> Listed[CodeApplyListed]:
    """List the applies, the newest first."""
    limit = call.query.limit
    rows = managed_objects.list_applies(
        call.session, before_id=read_id_cursor(call.query.cursor, BIG_ID), limit=limit + 1
    )
    page, next_cursor = cut(rows, limit, lambda row: (row.id,))
    items = [
        CodeApplyListed(
            id=row.id,
            at=row.at_ms,
            username=row.username,
            source=row.source,
            summary=json.loads(row.plan)["summary"],
            undone_at=row.undone_ms or None,
        )
        for row in page
    ]
    return Listed[CodeApplyListed](items=items, next_cursor=next_cursor)


def _prepare_undo(call: Call, apply_id: int, body: CodeUndoIn) -> tuple[PreparedUndo, CodePlan]:
    request = UndoRequest(apply_id, call.actor, body.force, call.config.executor_networks)
    with read_scope() as session:
        prepared_undo = prepare_undo(session, request, now_ms=call.now_ms)
    return prepared_undo, _plan(prepared_undo.plan)


@resource.post(
    "/code/applies/<int:apply_id>/undo",
    body=CodeUndoIn,
    answer=CodePlan,
    right=Right.EDIT,
    prepare=_prepare_undo,
)
def undo_code(
    call: Call, apply_id: int, body: CodeUndoIn, preparation: tuple[PreparedUndo, CodePlan]
) -> CodePlan:
    """Put back what an apply changed, unless it was changed again since."""
    prepared_undo, plan_answer = preparation
    plan = undo_apply(call.session, prepared_undo, clock=now_ms)
    return plan_answer if plan is prepared_undo.plan else _plan(plan)


@resource.get("/code/schema.json", right=PUBLIC, content_type="application/schema+json")
def get_schema(_call: Call) -> Response:
    """Return the JSON Schema of the files, for editors."""
    return Response(_schema(), content_type="application/schema+json")


@cache
def _schema() -> str:
    from app.api.v1.schemas.code import file_schema  # here: few installations ask for it

    return json.dumps(file_schema(), indent=2, ensure_ascii=False)


def _request(call: Call, body: CodePlanIn) -> CodeRequest:
    sections = _sections(body.document)
    return CodeRequest(
        read_document(sections["groups"], sections["jobs"], sections["channels"], sections["calendars"]),
        call.actor,
        body.prune,
        call.config.executor_networks,
        call.config.shared_with_java,
    )


def _sections(document: CodeDocument) -> dict[str, dict[str, Any]]:
    """Return the objects of a document, each with the members that are named."""
    return {
        name: {key: item.model_dump(exclude_unset=True) for key, item in getattr(document, name).items()}
        for name in ("groups", "jobs", "channels", "calendars")
    }


def _plan(plan: Plan) -> CodePlan:
    return CodePlan.model_validate(plan.as_json())
