"""Export and import of jobs as files of jobs as code. A file is first planned, then a task imports it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.console.jobs.form.forms import ImportForm
from app.console.jobs.lists.filter import requested_filter
from app.console.ui import tasks
from app.console.ui.lists.listing import ticked_ids
from app.console.ui.notices import way_back
from app.console.web import refusals
from app.console.web.access import Access
from app.console.web.confirmation import confirmation_kind, refusal_status
from app.console.web.current import current_actor, settings, translate, translate_error
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.code.document import Document
from app.domain.code.plan import Plan
from app.domain.tasks import ResultLine, TaskKind
from app.domain.text.texts import N_
from app.errors import InvalidInput, PermissionDenied
from app.services.code import importing
from app.services.code.importing import ImportOptions
from app.services.code.job_file import SIZE_MAX, has_source, read_file, write_file
from app.services.code.writing import Ids
from app.services.jobs import bulk, jobs

blueprint = Blueprint("job_transfer", __name__, url_prefix="/jobinfo")
POLICY = {
    "export": Access.VIEW,
    "import_file": Access.EDIT,
}

FILE_NAME = "jobs.yaml"
#: line end that a text area sends
LINE_END = "\r\n"
OTHER_PLAN = N_("What would be changed is no longer what was shown: check it again")


@dataclass(frozen=True)
class _Page:
    """What the page shows: the text that was sent, and what importing it would do, or why it cannot."""

    text: str = ""
    error: str = ""
    lines: Sequence[ResultLine] = ()
    #: errors of the file, of which ``lines`` may have the first
    error_count: int = 0
    plan: Plan | None = None
    has_code: bool = False


@blueprint.get("/export")
def export() -> Response:
    """Return the ticked jobs as a file; without ticks, all that match the filters."""
    with read_scope() as session:
        if "id" in request.args and "matching" not in request.args:
            job_ids = bulk.check_ids(ticked_ids(bulk.JOBS_MAX))
        else:
            job_ids = _matching(session)
        text = write_file(session, job_ids, actor=current_actor())
    response = Response(text, content_type="application/yaml; charset=utf-8")
    response.headers.set("Content-Disposition", "attachment", filename=FILE_NAME)
    return response


def _matching(session: Session) -> list[int]:
    page = jobs.list_rows(
        session, requested_filter(session), actor=current_actor(), start=0, length=bulk.MATCHING_MAX
    )
    if page.total > bulk.MATCHING_MAX:
        problem = N_("A file can contain at most %(limit)s jobs; narrow the filters", limit=bulk.MATCHING_MAX)
        raise InvalidInput("file", problem)
    return [job.id for job in page.rows]


@blueprint.route("/import", methods=["GET", "POST"])
def import_file() -> ResponseReturnValue:
    """Show the form, then the plan of the file; with ``apply`` submit the import of what was shown."""
    form, page = ImportForm(request.form), _Page()
    if request.method != "POST":
        return _render(page, form)
    form.file_name.data = _sent_name()
    try:
        page = _Page(_sent_text())
        inputs = {"text": page.text, "with_switches": form.with_switches.data}
        if "apply" in request.form:
            answer = tasks.redirect_to_existing_task(TaskKind.IMPORT, inputs, back=way_back("jobs.index"))
            if answer is not None:
                return answer
        document, options = read_file(page.text), _options(form)
        page = _plan(page, document, options)
    except InvalidInput as exc:
        return _render(_with_errors(page, exc), form), 400
    except PermissionDenied as exc:
        refusals.note_error(exc)
        return _render(replace(page, error=translate_error(exc)), form), 403
    if "apply" not in request.form or page.plan is None:
        return _render(page, form)
    if form.plan_hash.data and form.plan_hash.data != page.plan.digest:
        return _render(replace(page, error=translate(OTHER_PLAN)), form), 409
    if page.has_code and (status := refusal_status(form.password)):
        return _render(page, form), status
    form_key = tasks.requested_form_key()
    draft = importing.draft_task(document, options, page.plan, form_key=form_key, inputs=inputs)
    return tasks.submit(draft, back=way_back("jobs.index"))


def _options(form: ImportForm) -> ImportOptions:
    return ImportOptions(
        with_switches=form.with_switches.data,
        file_name=form.file_name.data or "",
        networks=settings().executor_networks,
        readable_by_java=settings().shared_with_java,
    )


def _plan(page: _Page, document: Document, options: ImportOptions) -> _Page:
    with read_scope() as session:
        preparation = importing.prepare_import(
            session, document, options, actor=current_actor(), now_ms=now_ms()
        )
    lines = importing.plan_lines(preparation.plans, Ids())
    return replace(page, lines=lines, plan=preparation.plan, has_code=has_source(document))


def _with_errors(page: _Page, error: InvalidInput) -> _Page:
    """Return the page with the errors of a file: one that has none of its objects in a notice."""
    if error.field != "file":
        return replace(page, lines=importing.error_lines(error), error_count=len(error.errors))
    return replace(page, error="\n".join(translate(item.message) for item in error.errors))


def _render(page: _Page, form: ImportForm) -> str:
    form.plan_hash.data = page.plan.digest if page.plan is not None else ""
    return render_template(
        "jobs/import.html",
        text=page.text if len(page.text) <= SIZE_MAX else "",
        rows=tasks.translated_lines(list(page.lines)),
        plan=page.plan.as_json() if page.plan is not None else None,
        error=page.error,
        error_count=page.error_count,
        form=form,
        confirmation=confirmation_kind() if page.has_code else "",
        form_key=tasks.requested_form_key(),
        heading=_("Import jobs"),
        back=way_back("jobs.index"),
    )


def _sent_name() -> str:
    """Return the name of the uploaded file, also when its text is sent again to be imported."""
    upload = request.files.get("file")
    name = upload.filename if upload is not None else ""
    return importing.clean_name(name or request.form.get("file_name", ""))


def _sent_text() -> str:
    """Return the text of the uploaded file, or without one the typed text; raises InvalidInput."""
    upload = request.files.get("file")
    if upload is None or not upload.filename:
        text = request.form.get("text", "").replace(LINE_END, "\n")
        if not text.strip():
            raise InvalidInput("file", N_("Choose a file, or paste its text into the box"))
        return text
    upload.stream.seek(0)  # the view runs again after a lost deadlock
    content = upload.stream.read(SIZE_MAX + 1)
    if len(content) > SIZE_MAX:
        raise InvalidInput(
            "file", N_("The file is larger than %(limit)s bytes; import it in parts", limit=SIZE_MAX)
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput("file", N_("The file is not UTF-8 text")) from exc
