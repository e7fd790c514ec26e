"""Page of what leads to a job and what follows it, as a picture and a table."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from app.console.ui.rounds.effects import effect_rows
from app.console.ui.rounds.picture import picture_of
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.services.jobs import jobs
from app.services.rounds.effects import find_affected
from app.services.rounds.graph import NODES_MAX, graph_of

blueprint = Blueprint("job_graph", __name__)
POLICY = {"show": Access.VIEW}


@blueprint.get("/jobinfo/<int(max=2147483647):job_id>/graph")
def show(job_id: int) -> ResponseReturnValue:
    """Show what leads to a job, what follows it, and what becomes of that while the job does not run."""
    actor = current_actor()
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor)
        graph = graph_of(session, job_id, actor=actor)
        effects = find_affected(session, job_id, actor=actor)
    return render_template(
        "jobs/graph.html",
        job=job,
        picture=picture_of(graph, job_id),
        is_cut=graph.truncated,
        jobs_max=NODES_MAX,
        effects=effect_rows(effects.jobs),
        effects_cut=effects.is_cut,
        may_edit=actor.may(job.job_group, Right.EDIT),
    )
