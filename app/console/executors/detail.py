"""The page of one executor group: its instances, what each has to do, and whether it takes new runs.

Whoever may see the group's jobs may see it; draining needs the right to operate them, as stopping a schedule does.
"""

from collections.abc import Mapping

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.confirm import Question, confirm_page
from app.console.ui.notices import done
from app.console.web.access import Access
from app.console.web.current import current_actor, say_reason, settings
from app.console.web.language import _
from app.db import read_scope, session_scope
from app.domain.draining import bare_address
from app.domain.permissions import Right
from app.domain.texts import N_
from app.errors import NotFound
from app.models.group import Group
from app.services.alarms import mutes
from app.services.executors import drains, groups
from app.services.executors.checks import Checked
from app.services.executors.instances import Instance, Instances, find_instances

blueprint = Blueprint("group_page", __name__, url_prefix="/jobgroup/<int(max=2147483647):group_id>")
POLICY = {
    "show": Access.VIEW,
    "drain": Access.OPERATE,
    "undrain": Access.OPERATE,
}


@blueprint.get("")
def show(group_id: int) -> ResponseReturnValue:
    """Show the instances of a group."""
    return instances_page(group_id, {})


def instances_page(group_id: int, checked: Mapping[str, Checked]) -> str:
    """Render the page; ``checked`` is what the addresses answered that were just asked."""
    actor = current_actor()
    group, instances = _found(group_id, Right.VIEW)
    with read_scope() as session:
        mute = mutes.find_of_group(session, group_id, now_ms=now_ms())
    return render_template(
        "executors/show.html",
        group=group,
        instances=instances,
        unusable={
            address: say_reason(why)
            for address, why in instances.unusable(settings().executor_networks).items()
        },
        checked=checked,
        may_operate=actor.may(group_id, Right.OPERATE),
        may_edit=actor.may(group_id, Right.EDIT),
        mute=mute,
        shared_with_java=settings().shared_with_java,
    )


@blueprint.route("/drain", methods=["GET", "POST"])
def drain(group_id: int) -> ResponseReturnValue:
    """Let no new run go to the address ``?address=``."""
    address = request.values.get("address", "")
    group, instances = _found(group_id, Right.OPERATE)
    if request.method == "POST":
        with session_scope() as session:
            drains.drain(session, group_id, address, actor=current_actor(), now_ms=now_ms())
        return done("drained", url_for("group_page.show", group_id=group_id))
    instance = next(
        (each for each in instances.rows if bare_address(each.address) == bare_address(address)), None
    )
    if instance is None:
        raise NotFound(N_("%(address)s is no address of this executor", address=address[:255]))
    subject = f"{instance.address} · {group.title} ({group.app_name})"
    question = Question(
        _("Drain this address?"),
        subject,
        _consequences(instance, instances),
        _("Drain"),
        "warning",
        "pause-circle",
    )
    return confirm_page(question, back=url_for("group_page.show", group_id=group_id))


@blueprint.post("/undrain")
def undrain(group_id: int) -> ResponseReturnValue:
    """Let new runs go to an address again; forgets one that nobody registers any more."""
    with session_scope() as session:
        drains.undrain(
            session, group_id, request.form.get("address", ""), actor=current_actor(), now_ms=now_ms()
        )
    return done("undrained", url_for("group_page.show", group_id=group_id))


def _found(group_id: int, right: Right) -> tuple[Group, Instances]:
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=current_actor(), right=right)
        return group, find_instances(session, group, now_ms=now_ms())


def _consequences(instance: Instance, instances: Instances) -> list[str]:
    """Return what comes of draining an instance, a sentence each."""
    told = [
        _(
            "No new run is sent to it, however its job is routed, until this is undone here: a restart changes nothing."
        )
    ]
    if instance.load.running:
        told.append(_("Runs under way there: %(n)s. They end as usual.", n=instance.load.running))
    if any(bare_address(each.address) != bare_address(instance.address) for each in instances.open):
        told.append(
            _(
                "Broadcasts are divided among the other addresses. A run for which somebody enters this address still goes there."
            )
        )
    else:
        told.append(
            _("It is the last address that takes new runs: every run of this executor fails from now on.")
        )
    return told
