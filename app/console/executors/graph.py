"""Page of what the jobs of an executor run after, as a picture and a table."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from app.console.ui.rounds.picture import picture_of, summary_of
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.services.executors import groups
from app.services.rounds.graph import NODES_MAX, graph_of_group

blueprint = Blueprint("group_graph", __name__)
POLICY = {"show": Access.VIEW}
#: most jobs that are counted where there are too many to be drawn
COUNTED_MAX = 10_000


@blueprint.get("/jobgroup/<int(max=2147483647):group_id>/graph")
def show(group_id: int) -> ResponseReturnValue:
    """Show what the jobs of an executor run after; of too many a box for each set of connected jobs."""
    actor = current_actor()
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=actor)
        graph = graph_of_group(session, group_id, actor=actor, most=COUNTED_MAX)
    is_large = len(graph.nodes) > NODES_MAX
    return render_template(
        "executors/graph.html",
        group=group,
        picture=summary_of(graph) if is_large else picture_of(graph),
        is_cut=graph.truncated,
        count=len(graph.nodes),
        jobs_max=NODES_MAX,
    )
