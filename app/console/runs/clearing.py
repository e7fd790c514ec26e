"""Clearing run logs: choose rows, show the count, confirm, submit a task."""

from dataclasses import asdict

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from wtforms import HiddenField, SelectField

from app.clock import now_ms
from app.console.ui import tasks
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.typed_phrase import deletion_phrase, require_phrase
from app.console.ui.labels import CLEAN_KINDS, choices
from app.console.ui.lists.listing import whole_number
from app.console.ui.notices import way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import lazy_gettext as _l
from app.database.flask_db import read_scope
from app.domain.tasks import TaskKind
from app.errors import InvalidInput
from app.services.executors import groups
from app.services.jobs import jobs
from app.services.runs import clearing
from app.services.runs.clearing import ClearRequest
from app.services.runs.logs import ClearType
from app.store.executors import listing as group_lists


class CleanForm(ConsoleForm):
    """Clear the log."""

    ALIASES = {"type": "kind"}

    job_group = HiddenField()
    job_id = HiddenField()
    kind = SelectField(_l("Runs to delete"), validate_choice=False)


blueprint = Blueprint("log_cleaning", __name__)
POLICY = {
    "clean": Access.OPERATE,
}


@blueprint.route("/joblog/clean", methods=["GET", "POST"])
def clean() -> ResponseReturnValue:
    """Show the form, the count, or submit the task."""
    form = CleanForm(
        request.form, job_group=str(whole_number("jobGroup", 0)), job_id=str(whole_number("jobId", 0))
    )
    form.kind.choices = choices(CLEAN_KINDS)
    if request.method == "POST":
        try:
            return _count_or_submit(form)
        except InvalidInput as exc:
            form.refuse(exc)
    page = _page(
        "runs/clean.html",
        form,
        cancel=way_back("logs.index"),
        retention_days=settings().log_retention_days,
    )
    return page, 400 if form.errors else 200


def _count_or_submit(form: CleanForm) -> ResponseReturnValue:
    """Show the number of rows; submit the task once it is confirmed.

    Only ``up_to_id`` comes back from the form, so that runs created after the count are kept. All else is
    computed again: a forged form can only delete fewer rows, and the audit entry is true.
    """
    is_confirmed = "up_to_id" in request.form
    clear_request = ClearRequest(
        _number(form.job_group.data),
        _number(form.job_id.data),
        _number(form.kind.data),
        up_to_id=_number(request.form["up_to_id"]) if is_confirmed else None,
    )
    back = url_for("logs.index", jobGroup=clear_request.group_id or None, jobId=clear_request.job_id or None)
    if is_confirmed:
        redirection = tasks.redirect_to_existing_task(TaskKind.CLEAR_LOGS, asdict(clear_request), back=back)
        if redirection is not None:
            return redirection
    with read_scope() as session:
        bounds, total = clearing.freeze_bounds(session, clear_request, actor=current_actor(), now_ms=now_ms())
    phrase = deletion_phrase(total) if clear_request.kind == ClearType.ALL else ""
    if is_confirmed and total:
        try:
            if phrase:
                require_phrase(phrase)
        except InvalidInput as exc:
            return _confirm(
                form, up_to_id=bounds.up_to_id, total=total, phrase=phrase, error=translate(exc.message)
            ), 400
        draft = clearing.draft_task(bounds, clear_request, total, form_key=tasks.requested_form_key())
        return tasks.submit(draft, back=back)
    return _confirm(form, up_to_id=bounds.up_to_id, total=total, phrase=phrase)


def _confirm(form: CleanForm, **values: object) -> str:
    form_key = tasks.requested_form_key()
    return _page("runs/clean_confirm.html", form, cancel=url_for("logs.index"), form_key=form_key, **values)


def _page(template: str, form: CleanForm, **values: object) -> str:
    group_id, job_id = _number(form.job_group.data), _number(form.job_id.data)
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor()) if job_id else None
        if job is not None and job.job_group == group_id:  # perhaps of a group that was deleted
            group = group_lists.find_group(session, group_id)
        else:
            group = groups.get_group(session, group_id, actor=current_actor()) if group_id else None
    kind = str(CLEAN_KINDS.get(_number(form.kind.data), ""))
    return render_template(template, form=form, group_id=group_id, group=group, job=job, kind=kind, **values)


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 18 else 0
