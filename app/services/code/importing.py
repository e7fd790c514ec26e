"""Import of a document on the console: the plan first, then that plan as a background task.

An import changes values as a user does on the pages: code owns what it owned before, nothing is deleted, and
each change has its own audit entry. It is planned outside the writing transaction.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_network
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.engine import read_scope
from app.domain.access.permissions import Actor
from app.domain.code.change_sources import IMPORT, source_text
from app.domain.code.document import CODE, ENABLED, Document, Members
from app.domain.code.plan import Action, FieldChange, Plan
from app.domain.jobs.job_field import Kind
from app.domain.jobs.members import MEMBER_OF
from app.domain.tasks import ResultLine, Step, TaskKind
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.task import Task
from app.services.code.apply import PreparedApply, hold_plan, prepare_apply
from app.services.code.job_plans import JobPlan, Wish
from app.services.code.plan import Plans
from app.services.code.request import CodeRequest
from app.services.code.writing import Ids, write_plans
from app.services.jobs import glue, versions
from app.services.tasks.task_step import TaskRefused, Turn
from app.services.tasks.tasks import TaskDraft
from app.settings.config import Network
from app.store.jobs.managed_objects import JOB

RIGHTS_CHANGED = N_("Your rights have changed: import the file again")
NOTHING_IMPORTED = N_("Nothing was imported: correct the errors below, then import the file again")
#: longest name of a file that is kept
FILE_NAME_MAX = 100
#: longest value shown of a change
VALUE_MAX = 2_000
#: result lines of a task, by what happens to an object
OUTCOMES = {Action.CREATE: "new", Action.UPDATE: "changed"}
ERROR = "error"
#: most errors that are shown, and longest name of a wrong value: a file may be wrong everywhere
ERRORS_MAX, PLACE_MAX = 200, 300


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import: those of the user, and the settings that its plan depends on."""

    #: schedules are switched as the file says; otherwise new jobs are off, and the others stay as they are
    with_switches: bool = False
    #: empty for pasted text
    file_name: str = ""
    networks: tuple[Network, ...] = ()
    readable_by_java: bool = False


def prepare_import(
    session: Session, document: Document, options: ImportOptions, *, actor: Actor, now_ms: Millis
) -> PreparedApply:
    """Plan an import; raises InvalidInput with all errors, or PermissionDenied."""
    request = import_request(document, options, actor=actor)
    return prepare_apply(session, request, plan_hash=None, now_ms=now_ms)


def import_request(document: Document, options: ImportOptions, *, actor: Actor) -> CodeRequest:
    """Return the request that plans an import. Groups and calendars of the file are for administrators."""
    jobs = {key: _members(members, options) for key, members in document.jobs.items()}
    groups, calendars = (document.groups, document.calendars) if actor.is_admin else ({}, {})
    document = replace(document, groups=groups, jobs=jobs, calendars=calendars)
    return CodeRequest(document, actor, (), options.networks, options.readable_by_java, is_import=True)


def _members(members: Members, options: ImportOptions) -> dict[str, Any]:
    result = {name: value for name, value in members.items() if name != ENABLED or options.with_switches}
    code = result.get(CODE, {})
    if code and not glue.REMARK_MIN <= len(code.get("remark", "")) <= glue.REMARK_MAX:
        result[CODE] = {name: value for name, value in code.items() if name != "remark"}
    return result


def draft_task(
    document: Document,
    options: ImportOptions,
    plan: Plan,
    *,
    form_key: str,
    inputs: Mapping[str, object],
) -> TaskDraft:
    """Return the task that imports a document as the plan says."""
    parameters = {
        # as text: parameters are stored in another order, which would make another plan
        "document": json.dumps(asdict(document)),
        "options": {**asdict(options), "networks": list(map(str, options.networks))},
        "plan_hash": plan.digest,
    }
    total = len(plan.objects) + plan.unchanged
    return TaskDraft(TaskKind.IMPORT, parameters, total, form_key, inputs)


def clean_name(name: str) -> str:
    """Return the name of a file without folders and without characters that cannot be shown."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(filter(str.isprintable, last)).strip()[:FILE_NAME_MAX]


def import_task(turn: Turn) -> None:
    """Import the whole file as the only piece of its task; the document is not kept afterwards."""
    parameters = json.loads(turn.task.parameters)
    networks = tuple(map(ip_network, parameters["options"]["networks"]))
    options = ImportOptions(**{**parameters["options"], "networks": networks})
    document = Document(**json.loads(parameters["document"]))
    request = import_request(document, options, actor=turn.actor())
    try:
        with read_scope() as session:
            ready = prepare_apply(session, request, plan_hash=parameters["plan_hash"], now_ms=turn.clock())
    except InvalidInput as exc:
        lines = error_lines(exc)
        turn.commit(lambda *_args: Step(lines=lines, is_done=True, error=NOTHING_IMPORTED))
        return

    def step(session: Session, task: Task, actor: Actor) -> Step:
        if actor != request.actor:
            raise TaskRefused(RIGHTS_CHANGED)
        lines = write_import(session, ready, file_name=options.file_name, clock=turn.clock)
        return Step(advance=task.total, lines=lines, is_done=True)

    turn.commit(step)


def write_import(session: Session, ready: PreparedApply, *, file_name: str, clock: Clock) -> list[ResultLine]:
    """Write a plan in the transaction of the caller; raises Conflict if it would be another one by now."""
    ready = hold_plan(session, ready, clock=clock)
    with versions.changes_from(source_text(IMPORT, file_name)):
        ids = write_plans(session, ready.plans, actor=ready.request.actor, clock=clock)
    return plan_lines(ready.plans, ids)


def plan_lines(plans: Plans, ids: Ids) -> list[ResultLine]:
    """Return a line for each object that changes."""
    return list(_plan_lines(plans, ids))


def _plan_lines(plans: Plans, ids: Ids) -> Iterator[ResultLine]:
    for number, plan in enumerate(plan for plan in plans.object_plans if plan.object_plan is not None):
        assert plan.object_plan is not None
        job_id = max(ids.of(plan), 0) if plan.object_plan.kind == JOB else 0
        is_new = plan.object_plan.action is Action.CREATE
        detail = {
            "kind": plan.object_plan.kind,
            "title": _title_of(plan.wish, plans) if isinstance(plan, JobPlan) else "",
            "changes": [] if is_new else [_change(change) for change in plan.object_plan.fields],
            "notes": list(plan.object_plan.notes),
        }
        yield ResultLine(number, OUTCOMES[plan.object_plan.action], job_id, plan.object_plan.key, detail)


def _title_of(wish: Wish, plans: Plans) -> str:
    """Return the description that a job will have."""
    present = plans.state.definitions.get(wish.job_id, {}).get("job_desc", "")
    return str(wish.members.get("description", present))


def _change(change: FieldChange) -> list[object]:
    member = MEMBER_OF.get(change.field)
    is_nested = member is not None and member.field is not None and member.field.kind is Kind.STRUCTURE
    texts = [json.dumps(value) if is_nested else _value(value) for value in (change.old, change.new)]
    return [change.field, *texts, list(change.diff)]


def _value(value: Any) -> object:
    """Return a value as one text, of code its length, of structures JSON."""
    if isinstance(value, Mapping) and "language" in value:
        return N_("%(n)s lines", n=value.get("lines", 0))
    if isinstance(value, bool):
        return N_("yes") if value else N_("no")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value))[:VALUE_MAX]
    return "" if value is None else _text(value)[:VALUE_MAX]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else str(value)


def error_lines(error: InvalidInput) -> list[ResultLine]:
    """Return a line for each error, under the place of its value: ``jobs.sample/close.schedule``.

    Beyond ERRORS_MAX only their number is shown.
    """
    lines = [
        ResultLine(number, ERROR, 0, item.field[:PLACE_MAX], {"problem": item.message})
        for number, item in enumerate(error.errors[:ERRORS_MAX])
    ]
    further = len(error.errors) - len(lines)
    if further:
        lines.append(
            ResultLine(ERRORS_MAX, ERROR, 0, "", {"problem": N_("%(num)s further errors", num=further)})
        )
    return lines
