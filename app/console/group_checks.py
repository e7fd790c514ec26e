"""The page that asks the executors of a group whether they answer. Administrators only."""

from dataclasses import replace

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.current import current_actor, executor_caller, say_reason
from app.db import read_scope
from app.services import group_checks, groups, rows
from app.services.group_checks import Checked
from app.store import overview

blueprint = Blueprint("group_checks", __name__)


@blueprint.route("/jobgroup/<int(max=2147483647):group_id>/test", methods=["GET", "POST"])
def test(group_id: int) -> ResponseReturnValue:
    """Show the executors of a group with what is known of them; ask them when the button is pressed."""
    actor, at_ms = current_actor(), now_ms()
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=actor)
        nodes = rows.nodes(session, group, now_ms=at_ms)
        known = {found.registry_value: found.capabilities for found in overview.find_registrations(session, [group.app_name])}
    checked: dict[str, Checked] = {}
    if request.method == "POST":
        found = group_checks.check_group(group_id, actor=actor, caller=executor_caller(), now_ms=at_ms)
        checked = {each.address: replace(each, reason=say_reason(each.reason)) for each in found}
    return render_template("groups/test.html", group=group, nodes=nodes, known=known, checked=checked)
