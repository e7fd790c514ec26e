"""Pages of alarm channels: list with health, and for administrators add, edit, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.console.alarms.forms import ChannelForm
from app.console.alarms.sections import read_sections
from app.console.ui.filters import comma_list
from app.console.ui.forms import stale
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.forms.picked_ids import picked_ids
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope, transact
from app.domain.access.permissions import Right
from app.domain.alarms.alarm_urls import split_urls
from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.domain.alarms.channel_settings import summary_of
from app.domain.text.fingerprints import fingerprint
from app.errors import ChangedMeanwhile, InvalidInput, NotFound
from app.models.channel import AlarmChannel
from app.services.alarms import channel_setup
from app.services.alarms.targets import settings_of
from app.services.executors import groups
from app.services.jobs import choices
from app.services.jobs.choices import Choice
from app.store.alarms.channels import ScopedChannel

blueprint = Blueprint("alarm_channels", __name__)
POLICY = {
    "index": Access.LOGIN,
    "add": Access.ADMIN,
    "edit": Access.ADMIN,
    "remove": Access.ADMIN,
}

#: groups and jobs named in a row of the list
NAMES_MAX = 3


@blueprint.get("/alarmchannels")
def index() -> ResponseReturnValue:
    """List the channels with their health; for administrators also what they are, and those set up elsewhere.

    Others see the channels that get alarms of their jobs.
    """
    actor, config = current_actor(), settings()
    if not actor.has_anywhere(Right.VIEW):
        return render_template("alarms/channels.html", sections=None)
    with read_scope() as session:
        sections = read_sections(session, actor, now_ms=now_ms())
        setup = _setup(session, [entry.row for entry in sections.health]) if actor.is_admin else {}
    has_mails = any(entry.channel.kind == ChannelKind.MAIL for entry in sections.health)
    return render_template(
        "alarms/channels.html",
        sections=sections,
        kinds=KINDS,
        configured=len(config.alarm_urls),
        unmailed=not config.mail.host and has_mails,
        **setup,
    )


def _setup(session: Session, channels: Sequence[ScopedChannel]) -> dict[str, Any]:
    """Return how the channels are set up, by id, and the groups with channels of their own."""
    visible = groups.visible_groups(session, current_actor())
    return {
        "summaries": {row.channel.id: _summary(row.channel) for row in channels},
        "scopes": _scope_texts(session, channels, {group.id: group.title for group in visible}),
        "groups": [(group, len(split_urls(group.alarm_urls))) for group in visible if group.alarm_urls],
    }


@blueprint.route("/alarmchannels/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a channel of the kind ``?kind=slack``."""
    kind = request.values.get("kind", "")
    if kind not in list(ChannelKind):
        return redirect(url_for("alarm_channels.index"), 303)
    with read_scope() as session:
        name = channel_setup.free_name(session, _(KINDS[ChannelKind(kind)].title))
    form = ChannelForm(request.form, kind=kind, name=name, scope="all")
    form.describe(ChannelKind(kind), {})
    if request.method == "POST":
        try:
            save = partial(
                channel_setup.add_channel, draft=form.draft(), actor=current_actor(), now_ms=now_ms()
            )
            return _after_save(transact(save), "added", form.name.data or "")
        except InvalidInput as exc:
            form.refuse(exc)
    return _page(form, ChannelKind(kind), None)


@blueprint.route("/alarmchannels/<int(max=2147483647):channel_id>/edit", methods=["GET", "POST"])
def edit(channel_id: int) -> ResponseReturnValue:
    """Change a channel; its secrets are not shown."""
    with read_scope() as session:
        row = channel_setup.get_channel(session, channel_id, actor=current_actor())
    kind, channel = _kind_of(row.channel), row.channel
    form = ChannelForm(
        request.form or None,
        name=channel.name,
        scope="all" if channel.for_all else "chosen",
        groups=",".join(map(str, sorted(row.group_ids))),
        jobs=",".join(map(str, sorted(row.job_ids))),
        daily=bool(channel.daily),
        loaded=fingerprint(channel_setup.state_of(row)),
    )
    form.describe(kind, settings_of(channel))
    if request.method == "POST":
        try:
            draft = replace(form.draft(), loaded=stale.form_fingerprint())
            save = partial(
                channel_setup.update_channel,
                channel_id=channel_id,
                draft=draft,
                actor=current_actor(),
                now_ms=now_ms(),
            )
            transact(save)
            return _after_save(channel_id, "saved", form.name.data or "")
        except InvalidInput as exc:
            form.refuse(exc)
        except ChangedMeanwhile as exc:
            stale.refuse(form, exc, None, url_for("alarm_channels.edit", channel_id=channel_id))
    return _page(form, kind, channel)


@blueprint.route("/alarmchannels/<int(max=2147483647):channel_id>/delete", methods=["GET", "POST"])
def remove(channel_id: int) -> ResponseReturnValue:
    """Delete a channel."""
    with read_scope() as session:
        channel = channel_setup.get_channel(session, channel_id, actor=current_actor()).channel
    if request.method == "POST":
        with session_scope() as session:
            channel_setup.remove_channel(session, channel_id, actor=current_actor(), now_ms=now_ms())
        subject = Subject("channel", channel_id, channel.name)
        return done("removed", url_for("alarm_channels.index"), of=subject)
    consequence = _("No more alarms are sent to it.")
    question = Question(
        _("Delete alarm channel?"), channel.name, [consequence], _("Delete"), "danger", "trash"
    )
    return confirm_page(question, back=way_back("alarm_channels.index"))


def _kind_of(channel: AlarmChannel) -> ChannelKind:
    """Return the kind of a channel; raises NotFound for one of a newer version."""
    if channel.kind not in list(ChannelKind):
        raise NotFound(channel_setup.MISSING)
    return ChannelKind(channel.kind)


def _after_save(channel_id: int, code: str, name: str) -> ResponseReturnValue:
    """Return to the list, or repeat the form at the page that sends a test alarm."""
    if "test" in request.form:
        return redirect(url_for("alarm_tests.channel", channel_id=channel_id), 307)
    return done(code, url_for("alarm_channels.index"), of=Subject("channel", channel_id, name.strip()))


def _summary(channel: AlarmChannel) -> str:
    return summary_of(ChannelKind(channel.kind), settings_of(channel)) if channel.kind in KINDS else ""


def _scope_texts(
    session: Session, rows: Sequence[ScopedChannel], titles: Mapping[int, str]
) -> dict[int, str]:
    """Return channel id -> its scope in words; ``titles`` are those of the groups."""
    job_ids = {job_id for row in rows for job_id in sorted(row.job_ids)[:NAMES_MAX]}
    jobs = {int(choice.value): choice.text for choice in _jobs(session, job_ids)}
    return {row.channel.id: _scope_text(row, titles, jobs) for row in rows}


def _scope_text(row: ScopedChannel, titles: Mapping[int, str], jobs: Mapping[int, str]) -> str:
    if row.channel.for_all:
        return _("all jobs")
    names = [titles.get(group_id, str(group_id)) for group_id in sorted(row.group_ids)[:NAMES_MAX]]
    names += [jobs[job_id] for job_id in sorted(row.job_ids)[:NAMES_MAX]]
    text, more = comma_list(names[:NAMES_MAX]), len(row.group_ids) + len(row.job_ids) - NAMES_MAX
    return _("%(named)s and %(n)s more", named=text, n=more) if more > 0 else text


def _groups(session: Session, group_ids: set[int]) -> list[Choice]:
    titles = {group.id: group.title for group in groups.visible_groups(session, current_actor())}
    return [Choice(str(group_id), titles.get(group_id, str(group_id))) for group_id in sorted(group_ids)]


def _jobs(session: Session, job_ids: set[int]) -> list[Choice]:
    return choices.name_jobs(session, sorted(job_ids), actor=current_actor())


def _page(form: ChannelForm, kind: ChannelKind, channel: AlarmChannel | None) -> ResponseReturnValue:
    with read_scope() as session:
        group_choices = (
            _groups(session, set(picked_ids(form.groups.data))),
            _jobs(session, set(picked_ids(form.jobs.data))),
        )
    page = render_template(
        "alarms/channel.html",
        form=form,
        kind=KINDS[kind],
        channel=channel,
        picked=group_choices,
        no_mail_server=kind is ChannelKind.MAIL and not settings().mail.host,
    )
    return page, 400 if form.errors else 200
