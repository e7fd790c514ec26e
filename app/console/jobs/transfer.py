"""Jobs to a file and back: the file is shown as what it would change first, and sent again to be imported. Needs no scripts."""

from dataclasses import dataclass

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.jobs.list_filter import requested_filter
from app.console.ui.listing import ticked_ids
from app.console.ui.notices import way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import _
from app.db import read_scope
from app.domain.texts import N_, Text
from app.errors import InvalidInput
from app.services.jobs import export as job_export
from app.services.jobs import importing
from app.services.jobs.bulk import JOBS_MAX
from app.services.jobs.importing import Change, Finding, Kind
from app.services.jobs.job_file import SIZE_MAX, read_file

blueprint = Blueprint("job_transfer", __name__, url_prefix="/jobinfo")
POLICY = {
    "export": Access.VIEW,
    "import_file": Access.EDIT,
}

FILE_NAME = "jobs.json"
#: a text area sends two characters for the end of a line
LINE_END = "\r\n"


@dataclass(frozen=True, slots=True)
class Told:
    """One job of the file as it is shown."""

    finding: Finding
    problem: str
    changes: tuple[Change, ...]


@blueprint.get("/export")
def export() -> Response:
    """Return the ticked jobs as a file, without ticks all that match the filters."""
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
    """Ask for a file, tell what it would change, and with ``apply`` import it."""
    if request.method != "POST":
        return _page("", None)
    is_dry = "apply" not in request.form
    text = request.form.get("text", "")
    try:
        text = _sent_text()
        findings = importing.import_jobs(
            read_file(text, readable_by_java=settings().shared_with_java),
            actor=current_actor(),
            clock=now_ms,
            dry=is_dry,
        )
    except InvalidInput as exc:
        return _page(text, None, translate(exc.message)), 400
    failed = any(finding.kind is Kind.ERROR for finding in findings)
    return _page(text, findings, is_done=not (is_dry or failed)), 400 if failed else 200


def _page(text: str, findings: list[Finding] | None, error: str = "", *, is_done: bool = False) -> str:
    told = [_told(finding) for finding in findings or ()]
    counts = {kind.value: sum(finding.kind is kind for finding in findings or ()) for kind in Kind}
    return render_template(
        "jobs/import.html",
        text=text if len(text) <= SIZE_MAX else "",
        told=told,
        counts=counts,
        error=error,
        is_done=is_done,
        heading=_("Imported") if is_done else _("Import jobs"),
        back=way_back("jobs.index"),
    )


def _told(finding: Finding) -> Told:
    changes = tuple(Change(each.field, _said(each.old), _said(each.new)) for each in finding.changes)
    return Told(finding, _said(finding.problem), changes)


def _said(text: str) -> str:
    """Return a text in the reader's language where it is ours; what stands in a job is left as it is."""
    return translate(text) if isinstance(text, Text) else text


def _sent_text() -> str:
    """Return what was sent: the file, or without one the text; raises InvalidInput where it cannot be read."""
    sent = request.files.get("file")
    if sent is None or not sent.filename:
        text = request.form.get("text", "").replace(LINE_END, "\n")
        if not text.strip():
            raise InvalidInput("file", N_("Choose a file, or put its text into the box"))
        return text
    sent.stream.seek(0)  # a view whose transaction lost a deadlock runs again
    content = sent.stream.read(SIZE_MAX + 1)
    if len(content) > SIZE_MAX:
        raise InvalidInput(
            "file", N_("The file is larger than %(limit)s bytes: import it in parts", limit=SIZE_MAX)
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput("file", N_("The file is no text in UTF-8")) from exc
