"""Pages of background tasks: submission by a form, progress, cancellation and results."""

import re
import secrets
from collections.abc import Mapping
from functools import partial

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.lists.listing import address_with, fetch_requested
from app.console.ui.notices import way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.database.flask_db import read_scope, transact
from app.domain.tasks import ResultLine, TaskKind
from app.domain.text.texts import Text
from app.models.task import Task
from app.runtime.wake_up import TASKS, send_wake_up
from app.services.jobs.bulk import BulkAction
from app.services.tasks import tasks
from app.services.tasks.tasks import TaskDraft

blueprint = Blueprint("tasks", __name__, url_prefix="/tasks")
POLICY = {
    "index": Access.LOGIN,
    "show": Access.LOGIN,
    "cancel": Access.LOGIN,
}

#: field of a form, and query parameter of its page: a form sent twice makes one task, or one run
FORM_KEY = "form_key"
TITLES: Mapping[str, str] = {
    TaskKind.CLEAR_LOGS: _l("Clear the log"),
    TaskKind.IMPORT: _l("Import jobs"),
}
#: bulk action -> title of its task, past participle for its result
BULK_LABELS: Mapping[str, tuple[str, str]] = {
    BulkAction.START: (_l("Switch schedules on"), _l("switched on")),
    BulkAction.STOP: (_l("Switch schedules off"), _l("switched off")),
    BulkAction.RUN: (_l("Run jobs once"), _l("queued")),
    BulkAction.MOVE: (_l("Move jobs"), _l("moved")),
    BulkAction.TAG: (_l("Add a tag to jobs"), _l("tagged")),
    BulkAction.UNTAG: (_l("Remove a tag from jobs"), _l("tag removed")),
    BulkAction.REMOVE: (_l("Delete jobs"), _l("deleted")),
}


def new_form_key() -> str:
    """Return the key of a form that is shown."""
    return secrets.token_hex(16)


def requested_form_key() -> str:
    """Return the key that the form, or the address of its page, carries; a new one where there is none."""
    text = request.values.get(FORM_KEY, "")
    return text if re.fullmatch("[0-9a-f]{32}", text) else new_form_key()


def redirect_to_existing_task(
    kind: TaskKind, values: Mapping[str, object], *, back: str
) -> ResponseReturnValue | None:
    """Redirect to the task that the same form has submitted already; None: there is none."""
    with read_scope() as session:
        task_id = tasks.find_submitted(session, kind, requested_form_key(), values, actor=current_actor())
    return None if task_id is None else _lead_to(task_id, back=back, is_new=False)


def submit(draft: TaskDraft, *, back: str) -> ResponseReturnValue:
    """Store a task, wake the monitors and redirect to its page, which leads ``back`` in the end."""
    actor, at_ms = current_actor(), now_ms()
    task_id, is_new = transact(lambda session: tasks.submit_task(session, draft, actor=actor, now_ms=at_ms))
    send_wake_up(settings().home, TASKS)
    return _lead_to(task_id, back=back, is_new=is_new)


def _lead_to(task_id: int, *, back: str, is_new: bool) -> ResponseReturnValue:
    mark = None if is_new else 1
    return redirect(url_for("tasks.show", task_id=task_id, next=back, repeated=mark), 303)


@blueprint.get("")
def index() -> str:
    """List the user's own tasks; an administrator's list has those of all users."""
    with read_scope() as session:
        page, paging = fetch_requested(partial(tasks.list_tasks, session, actor=current_actor()))
    rows = [(task, title_of(task)) for task in page.rows]
    return render_template("tasks/index.html", rows=rows, paging=paging)


@blueprint.get("/<int(max=2147483647):task_id>")
def show(task_id: int) -> str:
    """Show the progress of a task, in the end its result."""
    with read_scope() as session:
        progress = tasks.get_progress(session, task_id, actor=current_actor(), now_ms=now_ms())
    task = progress.task
    return render_template(
        "tasks/show.html",
        task=task,
        progress=progress,
        error=translate(progress.error),
        title=title_of(task),
        rows=translated_lines(progress.lines),
        action=task.action,
        word=_done_word(task),
        is_repeated="repeated" in request.args,
        back=way_back("tasks.index"),
        refresh_address=address_with(refresh="auto"),
    )


@blueprint.post("/<int(max=2147483647):task_id>/cancel")
def cancel(task_id: int) -> ResponseReturnValue:
    """Stop a task after the piece in progress; one that has ended meanwhile shows its result."""
    tasks.cancel_task(task_id, actor=current_actor(), clock=now_ms)
    return redirect(url_for("tasks.show", task_id=task_id, next=way_back("tasks.index")), 303)


def translated_lines(lines: list[ResultLine]) -> list[dict[str, object]]:
    """Return result lines with the texts of their details in the reader's language."""
    return [
        {
            "number": line.number,
            "job_id": line.object_id,
            "name": line.name,
            "outcome": line.outcome,
            "detail": _translate(line.detail),
        }
        for line in lines
    ]


def title_of(task: Task) -> str:
    """Return the name of what a task does; one that a newer version has submitted has none."""
    title, _done = BULK_LABELS.get(task.action, (TITLES.get(task.kind, ""), ""))
    return str(title or _("Task"))


def _done_word(task: Task) -> str:
    """Return the past participle of a bulk action; empty for other tasks."""
    _title, word = BULK_LABELS.get(task.action, ("", ""))
    return str(word)


def _translate(value: object) -> object:
    if isinstance(value, Text):
        return translate(value)
    if isinstance(value, dict):
        return {name: _translate(member) for name, member in value.items()}
    return [_translate(member) for member in value] if isinstance(value, list) else value
