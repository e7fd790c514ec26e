"""Pages of blackouts: the list, one to add, and its end."""

from functools import partial

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import DAY_MS, now_ms
from app.console.blackouts.forms import ALL, GROUP, JOB, BlackoutForm
from app.console.ui.calendars.blackout_words import scope_text, when_text, window_text
from app.console.ui.filters import reader_zone
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.lists.listing import here, whole_number
from app.console.ui.notices import Subject, done, way_back
from app.console.ui.preferences import zone_offsets
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.domain.calendars.blackouts import Afterwards
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from app.services.calendars import blackouts
from app.services.calendars.blackout_rules import WITHOUT_JAVA, check_draft
from app.services.calendars.blackouts import BlackoutState, BlackoutView
from app.services.executors import groups
from app.services.jobs import choices
from app.store.base.paging import to_id

blueprint = Blueprint("blackouts", __name__, url_prefix="/blackouts")
POLICY = {
    "index": Access.LOGIN,
    "add": Access.OPERATE,
    "end": Access.OPERATE,
}
#: rows of those that are over
OVER_SHOWN = 25


@blueprint.get("")
def index() -> ResponseReturnValue:
    """List the blackouts: on now, to come, recurring, over."""
    actor, at_ms, before_id = current_actor(), now_ms(), whole_number("before", 0)
    with read_scope() as session:
        lasting = blackouts.list_lasting(session, actor=actor, now_ms=at_ms)
        over = blackouts.list_page(
            session,
            actor=actor,
            now_ms=at_ms,
            state=BlackoutState.OVER,
            before_id=max(0, before_id),
            limit=OVER_SHOWN + 1,
        )
    coming = [view for view in lasting if view.state is BlackoutState.COMING]
    sections = [
        ("on", _("On now"), [view for view in lasting if view.state is BlackoutState.ON]),
        ("coming", _("To come"), [view for view in coming if not view.is_recurring]),
        ("recurring", _("Recurring"), [view for view in coming if view.is_recurring]),
    ]
    return render_template(
        "blackouts/index.html",
        sections=sections,
        over=over[:OVER_SHOWN],
        older=url_for("blackouts.index", before=over[OVER_SHOWN - 1].id) if len(over) > OVER_SHOWN else "",
        is_first=not before_id,
        may_end={view.id for view in lasting if blackouts.may_change(actor, view.blackout, view.group_id)},
        may_add=actor.has_anywhere(Right.OPERATE),
        scope_text=scope_text,
        when_text=when_text,
        window_text=window_text,
        hint=translate(WITHOUT_JAVA) if settings().shared_with_java else "",
    )


@blueprint.route("/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a blackout; ``?group=`` or ``?job=`` chooses its scope."""
    actor = current_actor()
    group, job = request.args.get("group", ""), request.args.get("job", "")
    scope = JOB if job else GROUP if group or not actor.is_admin else ALL
    form = BlackoutForm(request.form, scope=scope, group=group, job=job)
    if request.method == "POST" and (view := _save(form)) is not None:
        return done(
            "added", url_for("blackouts.index"), of=Subject("blackout", view.id, view.blackout.reason)
        )
    return _page(form)


@blueprint.route("/<int(max=2147483647):blackout_id>/end", methods=["GET", "POST"])
def end(blackout_id: int) -> ResponseReturnValue:
    """End a blackout, or one that is to come before it begins."""
    actor, back = current_actor(), way_back("blackouts.index")
    with read_scope() as session:
        view = blackouts.get_blackout(session, blackout_id, actor=actor, now_ms=now_ms())
    if not blackouts.may_change(actor, view.blackout, view.group_id):
        raise PermissionDenied(N_("permission denied"))
    if request.method == "POST":
        transact(partial(blackouts.end_blackout, blackout_id=blackout_id, actor=actor, clock=now_ms))
        return done("blackout_over", back, of=Subject("blackout", view.id, view.blackout.reason))
    is_on = view.state is BlackoutState.ON
    question = Question(
        _("End the blackout?"),
        view.blackout.reason,
        [f"{scope_text(view)}{_(': ')}{when_text(view.blackout)}", *consequences(view)],
        _("End it now") if is_on else _("Withdraw"),
        "warning",
        "stop-circle",
    )
    return confirm_page(question, back=back)


def consequences(view: BlackoutView) -> list[str]:
    """Return what becomes of the jobs of a blackout when it ends now."""
    if view.state is not BlackoutState.ON:
        return [_("It will not begin.")]
    texts = [_("Runs that wait for its end start, and schedules go on.")]
    if view.is_recurring:
        texts.append(_("It does not come again."))
    if view.blackout.afterwards is Afterwards.RUN_ONCE:
        return [*texts, _("Of each schedule that was due, the latest instant runs now.")]
    return [*texts, _("What was due meanwhile stays skipped.")]


def _save(form: BlackoutForm) -> BlackoutView | None:
    """Store what was entered; None with the errors in the form."""
    errors = InputErrors()
    draft = form.draft(errors, readable_by_java=settings().shared_with_java)
    try:
        with errors:
            check_draft(draft, now_ms=now_ms())
        errors.raise_all()
        return transact(partial(blackouts.add_blackout, draft=draft, actor=current_actor(), clock=now_ms))
    except InvalidInput as exc:
        form.refuse(exc)
    except (Conflict, NotFound) as exc:
        form.refuse(InvalidInput("", exc.args[0]))
    return None


def _page(form: BlackoutForm) -> ResponseReturnValue:
    actor, job_id = current_actor(), to_id(form.job.data or "")
    with read_scope() as session:
        visible = groups.visible_groups(session, actor)
        job_choices = choices.name_jobs(session, [job_id], actor=actor) if job_id else []
    operable = [(str(group.id), group.title) for group in visible if actor.may(group.id, Right.OPERATE)]
    form.offer(operable, is_admin=actor.is_admin)
    page = render_template(
        "blackouts/new.html",
        form=form,
        job_text=job_choices[0].text if job_choices else "",
        zone=reader_zone().key,
        config_zone=settings().time_zone,
        zones=zone_offsets(now_ms() // DAY_MS),
        action=here(),
        cancel=way_back("blackouts.index"),
    )
    return page, 400 if form.wrong_fields or form.form_errors else 200
