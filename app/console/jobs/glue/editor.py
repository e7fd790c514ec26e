"""GLUE editor: the source of a job and its versions."""

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.jobs.form.forms import GlueForm
from app.console.ui import tasks
from app.console.ui.forms import stale
from app.console.ui.forms.stale import LastChange
from app.console.ui.lists.listing import whole_number
from app.console.ui.notices import Subject, done
from app.console.web.access import Access
from app.console.web.confirmation import confirmation_kind, refusal_status
from app.console.web.current import current_actor
from app.console.web.language import lazy_gettext as _l
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Right
from app.domain.jobs.glue_languages import GLUE_LANGUAGES
from app.domain.text.fingerprints import fingerprint
from app.errors import ChangedMeanwhile, InvalidInput, NotFound
from app.models.job import Job
from app.services.jobs import glue

#: the editor's text -> the text shown
PHRASES = {
    "Find": _l("Find"),
    "Replace": _l("Replace with"),
    "next": _l("Next match"),
    "previous": _l("Previous match"),
    "all": _l("All matches"),
    "match case": _l("Match case"),
    "regexp": _l("Regular expression"),
    "by word": _l("Whole words"),
    "replace": _l("Replace"),
    "replace all": _l("Replace all"),
    "close": _l("Close"),
    "current match": _l("current match"),
    "replaced $ matches": _l("$ matches replaced"),
    "replaced match on line $": _l("match on line $ replaced"),
    "on line": _l("on line"),
    "Go to line": _l("Go to line"),
    "go": _l("Go"),
    "Fold line": _l("Fold the block"),
    "Unfold line": _l("Unfold the block"),
    "folded code": _l("folded code"),
    "unfold": _l("Unfold"),
    "Folded lines": _l("Folded lines"),
    "Unfolded lines": _l("Unfolded lines"),
    "to": _l("to line"),
    "Completions": _l("Completions"),
    "Control character": _l("Control character"),
}
blueprint = Blueprint("glue", __name__)
POLICY = {
    "edit": Access.GLUE,
}


@blueprint.route("/jobcode", methods=["GET", "POST"])
def edit() -> ResponseReturnValue:
    """Show the source of a job, or one of its versions, and save it as a new version."""
    job_id, version_id = whole_number("jobId", 0), whole_number("version", 0)
    actor = current_actor()
    with read_scope() as session:
        job = glue.get_glue_job(session, job_id, actor=actor, right=Right.GLUE)
        versions = glue.list_versions(session, job_id, actor=actor)
    version = next((version for version in versions if version.id == version_id), None)
    if version_id and version is None:
        raise NotFound(glue.MISSING_VERSION)
    is_current = version is None or (version is versions[0] and version.glue_source == job.glue_source)
    form = GlueForm(
        request.form,
        glue_source=(version.glue_source if version is not None else job.glue_source) or "",
        loaded=fingerprint(job.glue_source or ""),
    )
    status = _save(form, job) if request.method == "POST" else 200
    if not status:
        return done("saved", url_for("glue.edit", jobId=job_id), of=Subject("job", job_id, job.job_desc))
    language = GLUE_LANGUAGES.get(job.glue_type)
    editor = {
        "language": language.editor_mode if language is not None else "",
        "phrases": phrases(),
    }
    may_operate = actor.may(job.job_group, Right.OPERATE)
    page = render_template(
        "jobs/glue.html",
        job=job,
        form=form,
        versions=versions,
        shown=version_id,
        is_older=not is_current,
        may_operate=may_operate,
        form_key=tasks.new_form_key(),
        confirmation=confirmation_kind(),
        **editor,
    )
    return page, status


def _save(form: GlueForm, job: Job) -> int:
    """Save the source; otherwise show all errors in the form and return the status of the page."""
    status = refusal_status(form.password)
    source = (form.glue_source.data or "").replace("\r\n", "\n")
    remark = (form.glue_remark.data or "").strip()
    try:
        glue.check_version(job, source, remark)
        if not status:
            with session_scope() as session:
                glue.save_source(
                    session,
                    job.id,
                    source,
                    remark,
                    actor=current_actor(),
                    now_ms=now_ms(),
                    loaded=stale.form_fingerprint(),
                )
    except InvalidInput as exc:
        form.refuse(exc)
        return status or 400
    except ChangedMeanwhile as exc:
        stale.refuse(form, exc, _last_change(job.id), url_for("glue.edit", jobId=job.id))
        return 400
    return status


def _last_change(job_id: int) -> LastChange | None:
    with read_scope() as session:
        versions = glue.list_versions(session, job_id, actor=current_actor())
    return LastChange(versions[0].author or "", versions[0].update_time or 0) if versions else None


def phrases() -> dict[str, str]:
    """Return the texts of the editor in the reader's language."""
    return {phrase: str(text) for phrase, text in PHRASES.items()}
