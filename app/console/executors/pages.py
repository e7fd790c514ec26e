"""Executor groups: list, add, edit, remove, and applications that registered without a group."""

from functools import partial
from typing import Any

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.executors.forms import GroupForm
from app.console.ui.forms import stale
from app.console.ui.forms.base_form import whole
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.forms.promise_fields import PROMISE_INPUTS, escalation_json, promise_values, promises_json
from app.console.ui.lists.listing import chips, fetch_requested
from app.console.ui.lists.sorting import GROUPS, Sorting, requested_order
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.language import _, lazy_pgettext
from app.database.flask_db import read_scope, session_scope
from app.domain.archive.kinds import KEEPING
from app.domain.jobs.fields import FIELD_OF
from app.domain.text.fingerprints import fingerprint
from app.domain.text.input_errors import InputErrors
from app.errors import ChangedMeanwhile, InvalidInput
from app.models.group import Group
from app.services.alarms.channel_health import find_visible
from app.services.calendars.blackouts import find_groups_off
from app.services.executors import groups
from app.services.executors.group_rows import group_rows
from app.services.executors.groups import GroupDraft, GroupFilter
from app.services.executors.instances import find_instances
from app.store.executors import listing as group_lists
from app.store.executors.registry import alive_since
from app.store.jobs import listing as job_lists

blueprint = Blueprint("groups", __name__)
POLICY = {
    "index": Access.ADMIN,
    "add": Access.ADMIN,
    "edit": Access.ADMIN,
    "remove": Access.ADMIN,
    "end_changeover": Access.ADMIN,
    "show_instances": Access.ADMIN,
}

#: applications without a group shown above the list
GROUPLESS_SHOWN = 20


@blueprint.get("/jobgroup")
def index() -> ResponseReturnValue:
    """List the groups."""
    group_filter = GroupFilter(
        app_name=request.args.get("appname", "").strip(),
        title=request.args.get("title", "").strip(),
        order=requested_order(GROUPS),
        text=request.args.get("q", "").strip(),
    )
    with read_scope() as session:
        page, paging = fetch_requested(
            partial(groups.list_groups, session, group_filter, actor=current_actor())
        )
        networks = settings().executor_networks
        list_rows = group_rows(session, page.rows, networks=networks, now_ms=now_ms())
        groupless = group_lists.find_groupless(
            session, seen_after_ms=alive_since(now_ms()), limit=GROUPLESS_SHOWN
        )
    active = chips([("appname", "AppName", group_filter.app_name), ("title", _("Title"), group_filter.title)])
    return render_template(
        "executors/index.html",
        rows=list_rows,
        filter=group_filter,
        active=active,
        is_filtered=bool(active or group_filter.text),
        paging=paging,
        sorting=Sorting(GROUPS, group_filter.order),
        groupless=groupless,
        off=find_groups_off(now_ms=now_ms()),
    )


@blueprint.route("/jobgroup/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a group; ``?appname=`` fills in the name of a registered application."""
    app_name = request.args.get("appname", "")
    form = GroupForm(request.form, app_name=app_name, title=app_name)
    if request.method == "POST":
        try:
            with session_scope() as session:
                group_id = groups.add_group(session, _draft(form), actor=current_actor(), now_ms=now_ms())
            return done(
                "added",
                url_for("group_page.show", group_id=group_id),
                of=Subject("group", group_id, form.title.data or ""),
            )
        except InvalidInput as exc:
            form.refuse(exc)
            form.ask_again()
    return _edit_page(form, None)


@blueprint.route("/jobgroup/<int(max=2147483647):group_id>/edit", methods=["GET", "POST"])
def edit(group_id: int) -> ResponseReturnValue:
    """Change a group."""
    group = _group(group_id)
    values = {
        "app_name": group.app_name,
        "title": group.title,
        "address_type": str(group.address_type),
        "address_list": group.address_list or "",
        "alarm_urls": group.alarm_urls or "",
        "max_running": str(group.max_running or ""),
        **{name: str(getattr(group, name) or "") for name in KEEPING},
        "loaded": fingerprint(groups.state_of(group)),
    }
    form = GroupForm(request.form, data=values | promise_values(group.promises, group.escalation))
    if request.method == "POST":
        try:
            draft = _draft(form, of=group)
            with session_scope() as session:
                groups.update_group(session, group_id, draft, actor=current_actor(), now_ms=now_ms())
            return done(
                "saved", url_for("groups.index"), of=Subject("group", group_id, form.title.data or "")
            )
        except InvalidInput as exc:
            form.refuse(exc)
            form.ask_again()
        except ChangedMeanwhile as exc:
            stale.refuse(form, exc, None, url_for("groups.edit", group_id=group_id))
    return _edit_page(form, group)


@blueprint.route("/jobgroup/<int(max=2147483647):group_id>/delete", methods=["GET", "POST"])
def remove(group_id: int) -> ResponseReturnValue:
    """Remove a group without jobs."""
    group = _group(group_id)
    if request.method == "POST":
        with session_scope() as session:
            groups.remove_group(session, group_id, actor=current_actor(), now_ms=now_ms())
        return done("removed", url_for("groups.index"), of=Subject("group", group_id, group.title))
    with read_scope() as session:
        used_by = job_lists.count_of_group(session, group_id)
    consequences = [
        _("Users lose their rights on it. Executors that still register with this AppName get no more runs.")
    ]
    if used_by:
        consequences = [
            _(
                "It still has jobs (%(n)s). Delete them or move them to another executor group first.",
                n=used_by,
            )
        ]
    question = Question(
        _("Delete executor group?"),
        f"{group.title} ({group.app_name})",
        consequences,
        _("Delete"),
        "danger",
        "trash",
        first=(str(lazy_pgettext("link", "Jobs")), url_for("jobs.index", jobGroup=group_id))
        if used_by
        else None,
    )
    return confirm_page(question, back=way_back("groups.index"))


@blueprint.route("/jobgroup/<int(max=2147483647):group_id>/former-token/end", methods=["GET", "POST"])
def end_changeover(group_id: int) -> ResponseReturnValue:
    """End the replacement of a group's token."""
    group = _group(group_id)
    if request.method == "POST":
        with session_scope() as session:
            groups.end_changeover(session, group_id, actor=current_actor(), now_ms=now_ms())
        return done(
            "changed_over",
            url_for("group_page.show", group_id=group_id),
            of=Subject("group", group_id, group.title),
        )
    question = Question(
        _("End the token changeover?"),
        f"{group.title} ({group.app_name})",
        [_("Executors that still use the former token are refused from now on.")],
        _("End"),
        "warning",
        "key",
    )
    return confirm_page(question, back=way_back("group_page.show", group_id=group_id))


@blueprint.get("/jobgroup/<int(max=2147483647):group_id>/nodes")
def show_instances(group_id: int) -> ResponseReturnValue:
    """Show the instances of a group."""
    group = _group(group_id)
    with read_scope() as session:
        instances = find_instances(session, group, now_ms=now_ms())
    unusable = instances.unusable(settings().executor_networks)
    return render_template(
        "executors/instances.html",
        group=group,
        instances=instances,
        unusable=unusable,
        back=url_for("groups.index"),
    )


def _group(group_id: int) -> Group:
    with read_scope() as session:
        return groups.get_group(session, group_id, actor=current_actor())


def _draft(form: GroupForm, *, of: Group | None = None) -> GroupDraft:
    token: str | None = (form.access_token.data or "").strip()
    if of is not None and not token:
        token = "" if form.drop_token.data else None
    kind, errors = form.address_type.data or "", InputErrors()
    promises, escalation = promises_json(form, errors), escalation_json(form, errors)
    numbers = dict[str, Any]()
    for name in ("max_running", "log_days", "run_days"):
        numbers[name] = 0
        with errors:
            numbers[name] = whole(form[name], low=0, high=FIELD_OF[name].high)
    errors.raise_all()
    return GroupDraft(
        app_name=form.app_name.data or "",
        title=form.title.data or "",
        address_type=int(kind) if kind.isdecimal() else 0,
        address_list=form.address_list.data or "",
        access_token=token,
        alarm_urls=form.alarm_urls.data or "",
        promises=promises,
        escalation=escalation,
        log_archive=form.log_archive.data or "",
        **numbers,
        readable_by_java=settings().shared_with_java,
        networks=settings().executor_networks,
        loaded=stale.form_fingerprint(),
    )


def _edit_page(form: GroupForm, group: Group | None) -> ResponseReturnValue:
    form.offer()
    with read_scope() as session:
        names = [row.channel.name for row in find_visible(session, current_actor())]
    form.offer_channels(names, none=_("none"))
    heading = _("Edit executor group") if group is not None else _("Add an executor group")
    action = url_for("groups.edit", group_id=group.id) if group is not None else url_for("groups.add")
    page = render_template(
        "executors/edit.html",
        form=form,
        group=group,
        heading=heading,
        promise_inputs=PROMISE_INPUTS,
        action=action,
        cancel=url_for("groups.index"),
    )
    return page, 400 if form.errors else 200
