"""Cleaning the log: what is to go, how many rows that is, and then piece by piece with the progress in sight. Needs no scripts.

Every step is a form that is posted: the bounds of the rows travel in it, so that a clearing which was left can be gone on with.
They are sealed: what the trail says of a clearing, and that it has begun, is not for the browser to choose.
"""

import hmac

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.runs.forms import CleanForm
from app.console.ui.labels import CLEAN_KINDS, choices
from app.console.ui.listing import whole_number
from app.console.ui.notices import done, way_back
from app.console.ui.typed_phrase import deletion_phrase, require_phrase
from app.console.web.access import Access
from app.console.web.current import current_actor, seal, translate
from app.db import read_scope, session_scope
from app.domain.texts import N_
from app.errors import InvalidInput
from app.services.executors import groups
from app.services.jobs import jobs
from app.services.runs import clearing as run_clearing
from app.services.runs.logs import ClearType
from app.store.log_lists import Clearing

blueprint = Blueprint("log_cleaning", __name__)
POLICY = {
    "clean": Access.OPERATE,
}

#: the bounds of a clearing, as they travel in the form
BOUNDS = ("before_ms", "kept_id", "up_to_id")


@blueprint.route("/joblog/clean", methods=["GET", "POST"])
def clean() -> ResponseReturnValue:
    """Ask what is to go, count it, delete it."""
    form = CleanForm(
        request.form, job_group=str(whole_number("jobGroup", 0)), job_id=str(whole_number("jobId", 0))
    )
    form.kind.choices = choices(CLEAN_KINDS)
    if request.method == "POST":
        try:
            return _go_on(form) if "up_to_id" in request.form else _count(form)
        except InvalidInput as exc:
            form.refuse(exc)
    return _page("runs/clean.html", form, cancel=way_back("logs.index")), 400 if form.errors else 200


def _count(form: CleanForm) -> ResponseReturnValue:
    with read_scope() as session:
        asked = (_number(form.job_group.data), _number(form.job_id.data), _number(form.kind.data))
        clearing = run_clearing.begin(session, *asked, actor=current_actor(), now_ms=now_ms())
        total = run_clearing.count(session, clearing)
    return _confirm(form, clearing, total)


def _confirm(form: CleanForm, clearing: Clearing, total: int, error: str = "") -> str:
    phrase = deletion_phrase(total) if _number(form.kind.data) == ClearType.ALL else ""
    return _sealed_page(
        "runs/clean_confirm.html", form, clearing, total=total, deleted=0, phrase=phrase, error=error
    )


def _go_on(form: CleanForm) -> ResponseReturnValue:
    """Delete a piece; the trail has an entry before the first row goes."""
    kind, total = _number(form.kind.data), _number(request.form.get("total"))
    clearing = run_clearing.go_on(_clearing(form), kind, actor=current_actor(), now_ms=now_ms())
    before = _number(request.form.get("deleted"))
    if not hmac.compare_digest(
        request.form.get("seal", "").encode(), _seal(form, clearing, total, before).encode()
    ):
        raise InvalidInput("kind", N_("This form is not as it was shown: begin again"))
    if before == 0:
        if kind == ClearType.ALL:
            try:
                require_phrase(deletion_phrase(total))
            except InvalidInput as exc:
                return _confirm(form, clearing, total, translate(exc.message)), 400
        with session_scope() as session:
            run_clearing.record(session, clearing, kind, total, actor=current_actor(), now_ms=now_ms())
    deleted, is_over = run_clearing.clear_piece(clearing)
    if is_over:
        return done(
            "cleaned",
            url_for("logs.index", jobGroup=clearing.group_id or None, jobId=clearing.job_id or None),
        )
    total = max(total, before + deleted)
    return _sealed_page("runs/clean_progress.html", form, clearing, total=total, deleted=before + deleted)


def _sealed_page(
    template: str, form: CleanForm, clearing: Clearing, *, total: int, deleted: int, **shown: str
) -> str:
    """Show a step whose form leads to the next one."""
    values = {
        "clearing": clearing,
        "total": total,
        "deleted": deleted,
        "seal": _seal(form, clearing, total, deleted),
    }
    return _page(template, form, cancel=url_for("logs.index"), **values, **shown)


def _seal(form: CleanForm, clearing: Clearing, total: int, deleted: int) -> str:
    """Return what only this login's own forms carry for this step."""
    asked = [_number(field.data) for field in (form.job_group, form.job_id, form.kind)]
    step = [*asked, *(getattr(clearing, name) for name in BOUNDS), total, deleted]
    return seal("clean", repr(step))


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
