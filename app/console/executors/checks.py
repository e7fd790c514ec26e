"""Connection check of the instances of a group. Administrators only."""

from dataclasses import replace

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.executors.detail import instances_page
from app.console.web.access import Access
from app.console.web.current import current_actor, executor_caller, translate_reason
from app.services.executors import checks

blueprint = Blueprint("group_checks", __name__)
POLICY = {
    "test": Access.ADMIN,
}


@blueprint.route("/jobgroup/<int(max=2147483647):group_id>/test", methods=["GET", "POST"])
def test(group_id: int) -> ResponseReturnValue:
    """Probe every instance of a group and show the results; a GET probes nothing."""
    if request.method == "GET":
        return redirect(url_for("group_page.show", group_id=group_id))
    results = checks.check_group(group_id, actor=current_actor(), caller=executor_caller(), now_ms=now_ms())
    return instances_page(
        group_id, {row.address: replace(row, reason=translate_reason(row.reason)) for row in results}
    )
