"""Versions of a job's fields: compare one with the present fields, and restore it."""

from functools import partial

from flask import Blueprint, render_template, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.console.jobs.history import version_words
from app.console.ui.notices import Subject, done
from app.console.web import refusals
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.errors import DeniedValue, InvalidInput
from app.services.code.ownership import ownership_of
from app.services.jobs import jobs, version_history

blueprint = Blueprint("job_versions", __name__, url_prefix="/jobinfo/<int(max=2147483647):job_id>/versions")
POLICY = {
    "show": Access.VIEW,
    "restore": Access.EDIT,
}


@blueprint.get("/<int(max=2147483647):number>")
def show(job_id: int, number: int) -> ResponseReturnValue:
    """Show a version, and what restoring it would change."""
    return _page(job_id, number)


@blueprint.post("/<int(max=2147483647):number>/restore")
def restore(job_id: int, number: int) -> ResponseReturnValue:
    """Give the job the fields of a version, with all checks of an edit."""
    try:
        description = transact(partial(_restore, job_id=job_id, number=number))
    except InvalidInput as exc:
        refusals.note_error(exc)
        return _page(job_id, number, [translate(error.message) for error in exc.errors]), 400
    except DeniedValue as exc:
        refusals.note_error(exc)
        return _page(job_id, number, [translate(exc.reason)]), 400
    page = url_for("jobs.show", job_id=job_id, tab="versions")
    return done("restored", page, of=Subject("job", job_id, description))


def _restore(session: Session, *, job_id: int, number: int) -> str:
    version_history.restore_version(
        session,
        job_id,
        number,
        actor=current_actor(),
        clock=now_ms,
        readable_by_java=settings().shared_with_java,
    )
    return jobs.get_job(session, job_id, actor=current_actor()).job_desc


def _page(job_id: int, number: int, errors: list[str] | None = None) -> str:
    actor = current_actor()
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor)
        version = version_history.get_version(session, job_id, number, actor=actor)
        changes = version_history.difference(version_history.present_fields(session, job), version.fields)
        ids = [*version_words.group_ids(changes), version.fields.get("group_id")]
        titles = version_words.group_titles(session, ids, actor=actor)
        owner = ownership_of(session, job)
    return render_template(
        "jobs/version.html",
        job=job,
        version=version,
        source=version_words.source_text(version.source) if not version.is_outside else "",
        changes=version_words.words(changes, titles),
        owner=owner,
        owned=[version_words.label(name) for name in changes if owner is not None and name in owner.members],
        fields=[
            (version_words.label(name), version_words.value(name, value, titles))
            for name, (_absent, value) in version_history.difference({}, version.fields).items()
        ],
        may_edit=actor.may(job.job_group, Right.EDIT),
        errors=errors or [],
    )
