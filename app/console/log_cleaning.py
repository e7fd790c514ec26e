"""Cleaning the log: what is to go, how many rows that is, and then piece by piece with the progress in sight. Needs no scripts.

Every step is a form that is posted: the bounds of the rows travel in it, so that a clearing which was left can be gone on with.
"""

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.current import current_actor, say
from app.console.forms import CleanForm
from app.console.listing import whole_number
from app.console.notices import done, way_back
from app.console.typed_phrase import deletion_phrase, require_phrase
from app.console.words import CLEAN_KINDS, choices
from app.db import read_scope, session_scope
from app.errors import InvalidInput
from app.services import groups, jobs, log_clearing
from app.services.logs import ClearType
from app.store.log_lists import Clearing

blueprint = Blueprint("log_cleaning", __name__)

#: the bounds of a clearing, as they travel in the form
BOUNDS = ("before_ms", "kept_id", "up_to_id")


@blueprint.route("/joblog/clean", methods=["GET", "POST"])
def clean() -> ResponseReturnValue:
    """Ask what is to go, count it, delete it."""
    form = CleanForm(request.form, job_group=str(whole_number("jobGroup", 0)), job_id=str(whole_number("jobId", 0)))
    form.kind.choices = choices(CLEAN_KINDS)
    if request.method == "POST":
        try:
            return _go_on(form) if "up_to_id" in request.form else _count(form)
        except InvalidInput as exc:
            form.refuse(exc)
    return _page("logs/clean.html", form, cancel=way_back("logs.index")), 400 if form.errors else 200


def _count(form: CleanForm) -> ResponseReturnValue:
    with read_scope() as session:
        asked = (_number(form.job_group.data), _number(form.job_id.data), _number(form.kind.data))
        clearing = log_clearing.begin(session, *asked, actor=current_actor(), now_ms=now_ms())
        total = log_clearing.count(session, clearing)
    return _confirm(form, clearing, total)


def _confirm(form: CleanForm, clearing: Clearing, total: int, error: str = "") -> str:
    phrase = deletion_phrase(total) if _number(form.kind.data) == ClearType.ALL else ""
    shown = {"phrase": phrase, "error": error, "cancel": url_for("logs.index")}
    return _page("logs/clean_confirm.html", form, clearing=clearing, total=total, **shown)


def _go_on(form: CleanForm) -> ResponseReturnValue:
    """Delete a piece; the trail has an entry before the first row goes."""
    kind, total = _number(form.kind.data), _number(request.form.get("total"))
    clearing = log_clearing.go_on(_clearing(form), kind, actor=current_actor(), now_ms=now_ms())
    before = min(_number(request.form.get("deleted")), total)
    if before == 0:
        if kind == ClearType.ALL:
            try:
                require_phrase(deletion_phrase(total))
            except InvalidInput as exc:
                return _confirm(form, clearing, total, say(exc.message)), 400
        with session_scope() as session:
            log_clearing.record(session, clearing, kind, total, actor=current_actor(), now_ms=now_ms())
    deleted, is_over = log_clearing.clear_piece(clearing)
    if is_over:
        return done("cleaned", url_for("logs.index", jobGroup=clearing.group_id or None, jobId=clearing.job_id or None))
    total = max(total, before + deleted)
    return _page("logs/clean_progress.html", form, clearing=clearing, total=total, deleted=before + deleted, cancel=url_for("logs.index"))


def _page(template: str, form: CleanForm, **values: object) -> str:
    group_id, job_id = _number(form.job_group.data), _number(form.job_id.data)
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor()) if job_id else None
        group = groups.get_group(session, group_id, actor=current_actor()) if group_id else None
    kind = str(CLEAN_KINDS.get(_number(form.kind.data), ""))
    return render_template(template, form=form, group=group, job=job, kind=kind, bounds=BOUNDS, **values)


def _clearing(form: CleanForm) -> Clearing:
    bounds = {name: _number(text) if (text := request.form.get(name, "")) else None for name in BOUNDS}
    return Clearing(_number(form.job_group.data), _number(form.job_id.data), **bounds)


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= 18 else 0
