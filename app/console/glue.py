"""The GLUE editor: the source of a job and its versions."""

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console import editor_words
from app.console.current import current_actor
from app.console.forms import GlueForm
from app.console.listing import whole_number
from app.console.notices import done
from app.db import read_scope, session_scope
from app.domain.enums import GlueType
from app.domain.permissions import Right
from app.errors import InvalidInput, NotFound
from app.services import glue

blueprint = Blueprint("glue", __name__)

#: names the editor knows its languages by
LANGUAGES: dict[str, str] = {
    GlueType.GLUE_GROOVY: "Java",
    GlueType.GLUE_SHELL: "Shell",
    GlueType.GLUE_PYTHON: "Python",
    GlueType.GLUE_PHP: "PHP",
    GlueType.GLUE_NODEJS: "JavaScript",
    GlueType.GLUE_POWERSHELL: "PowerShell",
}


@blueprint.route("/jobcode", methods=["GET", "POST"])
def edit() -> ResponseReturnValue:
    """Show the source of a job, or a version of it, and save it as a new version."""
    job_id, shown = whole_number("jobId", 0), whole_number("version", 0)
    actor = current_actor()
    with read_scope() as session:
        job = glue.get_glue_job(session, job_id, actor=actor, right=Right.GLUE)
        versions = glue.list_versions(session, job_id, actor=actor)
    version = next((version for version in versions if version.id == shown), None)
    if shown and version is None:
        raise NotFound(glue.MISSING_VERSION)
    form = GlueForm(request.form, glue_source=(version.glue_source if version is not None else job.glue_source) or "")
    if request.method == "POST":
        try:
            source = (form.glue_source.data or "").replace("\r\n", "\n")
            with session_scope() as session:
                glue.save_source(session, job_id, source, (form.glue_remark.data or "").strip(), actor=actor, now_ms=now_ms())
            return done("saved", url_for("glue.edit", jobId=job_id))
        except InvalidInput as exc:
            form.refuse(exc)
    language = LANGUAGES.get(job.glue_type, "")
    page = render_template(
        "glue/edit.html", job=job, form=form, versions=versions, shown=shown, language=language, phrases=editor_words.phrases()
    )
    return page, 400 if form.errors else 200
