"""GLUE versions: compare two versions of a source, and restore one."""

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.jobs.form.forms import RestoreForm
from app.console.ui.filters import absolute
from app.console.ui.lists.listing import whole_number
from app.console.ui.notices import Subject, done
from app.console.web.access import Access
from app.console.web.confirmation import confirmation_kind, refusal_status
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Right
from app.domain.text.line_diff import CONTEXT, LINES_MAX, diff_count, diff_rows
from app.errors import InvalidInput, NotFound
from app.models.glue import GlueVersion
from app.models.job import Job
from app.services.jobs import glue

blueprint = Blueprint("glue_versions", __name__, url_prefix="/jobcode")
POLICY = {
    "diff": Access.GLUE,
    "restore": Access.GLUE,
}


@blueprint.get("/diff")
def diff() -> ResponseReturnValue:
    """Compare two versions of a job's code; 0 is the current code.

    By default the newest saved version that differs from the current code, beside it; ``whole=1``: with all
    equal lines.
    """
    job, versions = _job_with_versions()
    current = job.glue_source or ""
    other_ids = [version.id for version in versions if (version.glue_source or "") != current]
    old_id, new_id = whole_number("old", other_ids[0] if other_ids else 0), whole_number("new", 0)
    sources = _source(job, versions, old_id), _source(job, versions, new_id)
    is_whole = request.args.get("whole") == "1"
    rows = diff_rows(*sources, context=LINES_MAX if is_whole else CONTEXT)
    values = {"rows": rows, "old": old_id, "new": new_id, "limit": LINES_MAX}
    titles = [_title(versions, old_id), _title(versions, new_id)]
    return render_template(
        "jobs/glue_diff.html",
        job=job,
        versions=versions,
        titles=titles,
        is_only=not other_ids,
        is_same=sources[0] == sources[1],
        is_whole=is_whole,
        count=diff_count(rows or ()),
        **values,
    )


@blueprint.route("/restore", methods=["GET", "POST"])
def restore() -> ResponseReturnValue:
    """Restore an older version of the code, as a new version."""
    job, versions = _job_with_versions()
    version = _version(versions, whole_number("version", 0))
    form = RestoreForm(
        request.form, glue_remark=_("Restored: %(remark)s", remark=version.glue_remark)[: glue.REMARK_MAX]
    )
    status = 200
    if request.method == "POST" and not (status := refusal_status(form.password)):
        try:
            remark = (form.glue_remark.data or "").strip()
            with session_scope() as session:
                glue.restore_version(
                    session, version.id, actor=current_actor(), now_ms=now_ms(), remark=remark
                )
            return done(
                "restored", url_for("glue.edit", jobId=job.id), of=Subject("job", job.id, job.job_desc)
            )
        except InvalidInput as exc:
            form.refuse(exc)
            status = 400
    page = render_template(
        "jobs/glue_restore.html",
        job=job,
        version=version,
        form=form,
        when=absolute(version.update_time or 0),
        confirmation=confirmation_kind(),
    )
    return page, status


def _job_with_versions() -> tuple[Job, list[GlueVersion]]:
    job_id, actor = whole_number("jobId", 0), current_actor()
    with read_scope() as session:
        job = glue.get_glue_job(session, job_id, actor=actor, right=Right.GLUE)
        return job, glue.list_versions(session, job_id, actor=actor)


def _version(versions: list[GlueVersion], version_id: int) -> GlueVersion:
    """Return a version of this job; raises NotFound for versions of other jobs."""
    version = next((version for version in versions if version.id == version_id), None)
    if version is None:
        raise NotFound(glue.MISSING_VERSION)
    return version


def _title(versions: list[GlueVersion], version_id: int) -> str:
    if not version_id:
        return _("Current version")
    version = _version(versions, version_id)
    return " · ".join(filter(None, (absolute(version.update_time or 0), version.glue_remark, version.author)))


def _source(job: Job, versions: list[GlueVersion], version_id: int) -> str:
    return (_version(versions, version_id).glue_source if version_id else job.glue_source) or ""
