"""Favourites: the star of a job. Without scripts its form leads back to the page it was sent from."""

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from app.console.ui.notices import done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import session_scope
from app.services.jobs import job_list
from app.store.base.paging import to_id

blueprint = Blueprint("favourites", __name__)
POLICY = {
    "star": Access.VIEW,
}


@blueprint.post("/jobinfo/favourite")
def star() -> ResponseReturnValue:
    """Add the job ``add`` to the reader's favourites, or remove the job ``remove``.

    Scripts get no page back.
    """
    is_adding = "add" in request.form
    job_id = to_id(request.form.get("add" if is_adding else "remove", ""))
    with session_scope() as session:
        job_list.star_job(session, job_id, is_favourite=is_adding, actor=current_actor())
    if request.accept_mimetypes.best == "application/json":
        return Response(status=204)
    return done("starred" if is_adding else "unstarred", way_back("jobs.index"))
