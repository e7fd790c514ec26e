"""Page of one executor group: its instances with state, load and drain switch.

Needs the right to view the group; draining needs the right to operate it.
"""

from collections.abc import Mapping

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.executors.hour_bars import hour_bars
from app.console.ui.calendars.blackout_words import lines_of_group
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.notices import Subject, done
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate_reason
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Right
from app.domain.executors.draining import bare_address
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.group import Group
from app.services.alarms import mutes
from app.services.calendars.blackouts import find_group_off
from app.services.executors import drains, groups
from app.services.executors.checks import CheckResult
from app.services.executors.instance_records import count_states
from app.services.executors.instances import Instance, Instances, find_instances
from app.services.report.group_overview import read_overview
from app.store.executors.address_runs import READ_MAX
from executor_client.wire.protocol import from_handlers_header

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


def instances_page(group_id: int, checks: Mapping[str, CheckResult]) -> str:
    """Render the page; ``checks`` holds the results of a connection check by address."""
    actor = current_actor()
    group, instances = _get_instances(group_id, Right.VIEW)
    networks = settings().executor_networks
    with read_scope() as session:
        mute = mutes.find_of(session, group_id=group_id, now_ms=now_ms())
        off = find_group_off(session, group_id, actor=actor, now_ms=now_ms())
        blackouts = lines_of_group(session, group_id, actor=actor, now_ms=now_ms())
        overview = read_overview(session, group, instances, networks=networks, actor=actor, now_ms=now_ms())
    return render_template(
        "executors/show.html",
        group=group,
        instances=instances,
        unusable={address: translate_reason(why) for address, why in instances.unusable(networks).items()},
        checked=checks,
        overview=overview,
        bars=hour_bars(overview.hours, [record.instance.address for record in overview.records]),
        states=count_states(overview.records),
        runs_max=READ_MAX,
        handlers={row.address: from_handlers_header(row.handlers) for row in instances.rows},
        may_operate=actor.may(group_id, Right.OPERATE),
        may_edit=actor.may(group_id, Right.EDIT),
        mute=mute,
        blackouts=blackouts,
        is_off=off is not None,
        shared_with_java=settings().shared_with_java,
    )


@blueprint.route("/drain", methods=["GET", "POST"])
def drain(group_id: int) -> ResponseReturnValue:
    """Drain the instance ``?address=``, after a confirmation."""
    address = request.values.get("address", "")
    group, instances = _get_instances(group_id, Right.OPERATE)
    if request.method == "POST":
        with session_scope() as session:
            drains.drain(session, group_id, address, actor=current_actor(), now_ms=now_ms())
        return done(
            "drained",
            url_for("group_page.show", group_id=group_id),
            of=Subject("instance", group_id, address),
        )
    instance = next(
        (row for row in instances.rows if bare_address(row.address) == bare_address(address)), None
    )
    if instance is None:
        raise NotFound(N_("%(address)s is not an instance of this executor group", address=address[:255]))
    subject = f"{instance.address} · {group.title} ({group.app_name})"
    question = Question(
        _("Drain this instance?"),
        subject,
        _consequences(instance, instances),
        _("Drain"),
        "warning",
        "pause-circle",
    )
    return confirm_page(question, back=url_for("group_page.show", group_id=group_id))


@blueprint.post("/undrain")
def undrain(group_id: int) -> ResponseReturnValue:
    """Send new runs to an instance again; one that is neither registered nor listed disappears."""
    address = request.form.get("address", "")
    with session_scope() as session:
        drains.undrain(session, group_id, address, actor=current_actor(), now_ms=now_ms())
    return done(
        "undrained", url_for("group_page.show", group_id=group_id), of=Subject("instance", group_id, address)
    )


def _get_instances(group_id: int, right: Right) -> tuple[Group, Instances]:
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=current_actor(), right=right)
        return group, find_instances(session, group, now_ms=now_ms())


def _consequences(instance: Instance, instances: Instances) -> list[str]:
    """Return the consequences of draining an instance, one sentence each."""
    sentences = [_("No new runs are sent to it, even after it restarts, until it is undrained here.")]
    if instance.load.running:
        sentences.append(_("Current runs: %(n)s. They continue until they end.", n=instance.load.running))
    if any(bare_address(row.address) != bare_address(instance.address) for row in instances.open):
        sentences.append(
            _("Broadcasts go to the other instances. A manual run with this address still goes there.")
        )
    else:
        sentences.append(
            _("It is the last instance that accepts new runs: all runs of this executor group will fail.")
        )
    return sentences
