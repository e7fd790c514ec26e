"""Export and import of jobs. A file is first compared with the jobs here, then a task imports it."""

from collections.abc import Sequence

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.jobs.form.forms import ImportForm
from app.console.jobs.lists.filter import requested_filter
from app.console.ui import tasks
from app.console.ui.lists.listing import ticked_ids
from app.console.ui.notices import way_back
from app.console.web.access import Access
from app.console.web.confirmation import confirmation_kind, refusal_status
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import _
from app.database.engine import read_scope
from app.domain.tasks import TaskKind
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.jobs.bulk import JOBS_MAX
from app.services.jobs.transfer import export as job_export
from app.services.jobs.transfer import importing
from app.services.jobs.transfer.importing import Finding, Kind
from app.services.jobs.transfer.job_file import SIZE_MAX, read_file

blueprint = Blueprint("job_transfer", __name__, url_prefix="/jobinfo")
POLICY = {
    "export": Access.VIEW,
    "import_file": Access.EDIT,
}

FILE_NAME = "jobs.json"
#: line end that a text area sends
LINE_END = "\r\n"


@blueprint.get("/export")
def export() -> Response:
    """Return the ticked jobs as a file; without ticks, all that match the filters."""
    with read_scope() as session:
        if "id" in request.args and "matching" not in request.args:
            text = job_export.export_ticked(session, ticked_ids(JOBS_MAX), actor=current_actor())
        else:
            text = job_export.export_matching(session, requested_filter(), actor=current_actor())
    response = Response(text, content_type="application/json")
    response.headers.set("Content-Disposition", "attachment", filename=FILE_NAME)
    return response


@blueprint.route("/import", methods=["GET", "POST"])
def import_file() -> ResponseReturnValue:
    """Show the form, then what the file would change; with ``apply`` submit the import."""
    if request.method != "POST":
        return _page("", ())
    text = request.form.get("text", "")
    form = ImportForm(request.form)
    try:
        text = _sent_text()
        if "apply" in request.form:
            entered = importing.entered(text)
            submitted = tasks.redirect_to_existing_task(TaskKind.IMPORT, entered, back=way_back("jobs.index"))
            if submitted is not None:
                return submitted
        entries = read_file(text, readable_by_java=settings().shared_with_java)
        findings = importing.import_jobs(
            entries,
            actor=current_actor(),
            clock=now_ms,
            dry=True,
        )
    except InvalidInput as exc:
        return _page(text, (), translate(exc.message)), 400
    if any(finding.kind is Kind.ERROR for finding in findings):
        return _page(text, findings), 400
    has_code = any(entry.source is not None for entry in entries)
    if "apply" not in request.form:
        return _page(text, findings, form=form, has_code=has_code)
    if has_code and (status := refusal_status(form.password)):
        return _page(text, findings, form=form, has_code=has_code), status
    draft = importing.draft_task(
        text,
        len(findings),
        readable_by_java=settings().shared_with_java,
        form_key=tasks.requested_form_key(),
        file_name=_sent_name(),
    )
    return tasks.submit(draft, back=way_back("jobs.index"))


def _page(
    text: str,
    findings: Sequence[Finding],
    error: str = "",
    *,
    form: ImportForm | None = None,
    has_code: bool = False,
) -> str:
    return render_template(
        "jobs/import.html",
        text=text if len(text) <= SIZE_MAX else "",
        rows=tasks.translated_lines(importing.result_lines(findings)),
        counts={kind.value: sum(finding.kind is kind for finding in findings) for kind in Kind},
        error=error,
        form=form or ImportForm(),
        confirmation=confirmation_kind() if has_code else "",
        form_key=tasks.requested_form_key(),
        file_name=_sent_name(),
        heading=_("Import jobs"),
        back=way_back("jobs.index"),
    )


def _sent_name() -> str:
    """Return the name of the uploaded file, also when its text is sent again to be imported."""
    sent = request.files.get("file")
    given = sent.filename if sent is not None else ""
    return importing.clean_name(given or request.form.get("file_name", ""))


def _sent_text() -> str:
    """Return the text of the uploaded file, or without one the typed text; raises InvalidInput."""
    sent = request.files.get("file")
    if sent is None or not sent.filename:
        text = request.form.get("text", "").replace(LINE_END, "\n")
        if not text.strip():
            raise InvalidInput("file", N_("Choose a file, or paste its text into the box"))
        return text
    sent.stream.seek(0)  # the view runs again after a lost deadlock
    content = sent.stream.read(SIZE_MAX + 1)
    if len(content) > SIZE_MAX:
        raise InvalidInput(
            "file", N_("The file is larger than %(limit)s bytes; import it in parts", limit=SIZE_MAX)
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput("file", N_("The file is not UTF-8 text")) from exc
