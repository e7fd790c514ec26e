"""An executor group off, by a blackout without an end, and on again."""

from functools import partial

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.blackouts.forms import OffForm
from app.console.blackouts.pages import consequences
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.lists.listing import here
from app.console.ui.notices import Subject, done
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput
from app.services.calendars import blackouts
from app.services.executors import groups

blueprint = Blueprint("group_switch", __name__, url_prefix="/jobgroup/<int(max=2147483647):group_id>")
POLICY = {
    "off": Access.OPERATE,
    "on": Access.OPERATE,
}
IS_ON = N_("The executor group is not switched off")


@blueprint.route("/off", methods=["GET", "POST"])
def off(group_id: int) -> ResponseReturnValue:
    """Switch a group off, for a reason."""
    actor, page = current_actor(), url_for("group_page.show", group_id=group_id)
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=actor, right=Right.OPERATE)
    form = OffForm(request.form)
    if request.method == "POST":
        switch = partial(
            blackouts.switch_off_group,
            group_id=group_id,
            reason=form.reason.data or "",
            afterwards=form.afterwards.data or "",
            actor=actor,
            clock=now_ms,
            readable_by_java=settings().shared_with_java,
        )
        try:
            transact(switch)
            return done("group_off", page, of=Subject("group", group_id, group.title))
        except InvalidInput as exc:
            form.refuse(exc)
        except Conflict as exc:
            form.refuse(InvalidInput("", exc.args[0]))
    form.offer()
    text = render_template("blackouts/off.html", form=form, group=group, action=here(), cancel=page)
    return text, 400 if form.wrong_fields or form.form_errors else 200


@blueprint.route("/on", methods=["GET", "POST"])
def on(group_id: int) -> ResponseReturnValue:
    """Switch a group on again; the switches of its jobs are as they were."""
    actor, page = current_actor(), url_for("group_page.show", group_id=group_id)
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=actor, right=Right.OPERATE)
        view = blackouts.find_group_off(session, group_id, actor=actor, now_ms=now_ms())
    if view is None:
        raise Conflict(IS_ON)
    if request.method == "POST":
        transact(partial(blackouts.switch_on_group, group_id=group_id, actor=actor, clock=now_ms))
        return done("group_on", page, of=Subject("group", group_id, group.title))
    question = Question(
        _("Switch the executor on again?"),
        f"{group.title} ({group.app_name})",
        [*consequences(view), _("Jobs that are switched off stay off.")],
        _("Switch on"),
        "primary",
        "toggle-on",
    )
    return confirm_page(question, back=page)
