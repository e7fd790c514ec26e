"""API: stored variables and secrets."""

from sqlalchemy.orm import Session

from app.api.v1.cursors import cut, read_id_cursor
from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.variables import VariableIn, VariableOut, VariablePatch, VariableQuery
from app.domain.access.permissions import Actor, Right
from app.domain.jobs.variables import INSTALLATION
from app.errors import InvalidInput, NotFound
from app.models.variable import Variable
from app.services.variables import variables
from app.services.variables.variables import VariableDraft
from app.store.variables import variables as store
from app.store.variables.variables import VariableFilter

resource = Resource(
    "variables", "Stored variables and secrets, which parameters name as `${var.NAME}` and `${secret.NAME}`."
)


def _lock(session: Session, variable_id: int) -> None:
    store.lock_variable(session, variable_id)


@resource.get("/variables", answer=Listed[VariableOut], query=VariableQuery)
def list_variables(call: Call) -> Listed[VariableOut]:
    """List variables and secrets, the oldest first; of secrets without their values."""
    query: VariableQuery = call.query
    criteria = VariableFilter(
        name=query.name,
        group_id=query.group_id,
        is_secret=None if query.kind is None else query.kind == "secret",
    )
    after_id = read_id_cursor(query.cursor) or 0
    rows = variables.list_after(
        call.session, criteria, actor=call.actor, after_id=after_id, limit=query.limit + 1
    )
    page, next_cursor = cut(rows, query.limit, lambda row: (row.id,))
    return Listed[VariableOut](items=[_answer(row, call.actor) for row in page], next_cursor=next_cursor)


@resource.get("/variables/<int:variable_id>", answer=VariableOut, etag=True)
def get_variable(call: Call, variable_id: int) -> VariableOut:
    """Return a variable, or a secret without its value."""
    return _answer(variables.get_variable(call.session, variable_id, actor=call.actor), call.actor)


@resource.post("/variables", body=VariableIn, answer=VariableOut, status=201, right=Right.EDIT)
def add_variable(call: Call, body: VariableIn) -> Made:
    """Add a variable or a secret to a group; administrators also to the installation."""
    group_id = body.group_id or INSTALLATION
    draft = VariableDraft(
        body.name,
        value=body.value,
        secret=body.secret,
        allowed=body.allowed,
        is_confirmed=call.actor.may(group_id, Right.GLUE),
    )
    try:
        variable_id = variables.add_variable(
            call.session, draft, group_id=group_id, actor=call.actor, now_ms=call.now_ms
        )
    except NotFound as exc:
        raise InvalidInput("group_id", "there is no such executor group") from exc
    return Made(get_variable(call, variable_id), f"/variables/{variable_id}")


@resource.patch(
    "/variables/<int:variable_id>",
    body=VariablePatch,
    answer=VariableOut,
    right=Right.EDIT,
    etag=True,
    lock=_lock,
)
def change_variable(call: Call, variable_id: int, body: VariablePatch) -> VariableOut:
    """Change the value of a variable or secret, or the groups that may use it; the former value is kept."""
    current = variables.get_variable(call.session, variable_id, actor=call.actor)
    fields = body.model_fields_set
    draft = VariableDraft(
        value=body.value if "value" in fields else None,
        secret=body.secret if "secret" in fields else None,
        allowed=body.allowed if "allowed" in fields else None,
        is_confirmed=call.actor.may(current.group_id, Right.GLUE),
    )
    variables.change_variable(call.session, variable_id, draft, actor=call.actor, now_ms=call.now_ms)
    return get_variable(call, variable_id)


@resource.delete("/variables/<int:variable_id>", right=Right.EDIT, lock=_lock)
def delete_variable(call: Call, variable_id: int) -> None:
    """Delete a variable or secret. Runs of jobs that name it end as not started."""
    variables.remove_variable(call.session, variable_id, actor=call.actor, now_ms=call.now_ms)


def _answer(row: Variable, actor: Actor) -> VariableOut:
    return VariableOut(
        id=row.id,
        name=row.name,
        kind="secret" if row.is_secret else "variable",
        group_id=row.group_id or None,
        value=row.value,
        allowed=variables.visible_ids(row, actor),
        version=row.version,
        updated_at=row.updated_ms,
        username=row.username,
    )
