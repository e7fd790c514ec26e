"""Page with the job form: its contents, and the actions of its buttons."""

from dataclasses import replace
from functools import partial
from typing import Any

from flask import render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import DAY_MS, now_ms
from app.console.jobs.form import sections as form_sections
from app.console.jobs.form.draft import draft_of, offer, schedule_of, with_template
from app.console.jobs.form.forms import SECTIONS, JobForm
from app.console.jobs.form.parameter_preview import preview_of_job
from app.console.jobs.form.parameters import parameters_of, sent_parameter
from app.console.jobs.form.promise_parts import defaults_of
from app.console.jobs.form.rounds_preview import rounds_of
from app.console.jobs.form.schedule_preview import Preview, preview
from app.console.jobs.form.week import with_neighbours
from app.console.jobs.run_once import after_run
from app.console.ui.forms import stale
from app.console.ui.forms.base_form import keep_line_ends
from app.console.ui.forms.picked_ids import picked_ids
from app.console.ui.forms.stale import LastChange
from app.console.ui.notices import Subject, done
from app.console.ui.preferences import zone_offsets
from app.console.ui.rounds.words import foreign_name
from app.console.web import refusals
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import _
from app.console.web.languages import language_of_request
from app.database.flask_db import read_scope, transact
from app.domain.access.permissions import Right
from app.domain.enums import GlueType, WhenFull
from app.domain.jobs.fields import FIELD_OF, JobDraft
from app.domain.jobs.members import MEMBER_OF
from app.domain.runs.trigger_keys import Trigger
from app.domain.text.fingerprints import fingerprint, require_unchanged
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import ChangedMeanwhile, Conflict, DeniedValue, InvalidInput
from app.models.job import Job
from app.services.alarms.channel_health import find_visible
from app.services.code.ownership import ownership_of
from app.services.jobs import changes, choices, jobs, version_history
from app.services.limits.limits import LIMITS_MAX
from app.services.promises.suggestions import Suggestions, find_suggestions
from app.store.base.paging import to_id
from app.store.calendars import calendars
from app.store.executors import listing as group_lists
from app.store.limits import listing as limits

#: actions of the buttons beside Save, in the same transaction
START, RUN = "start", "run"
#: values of buttons that do what scripts do elsewhere: fill in one run at once, show the next rounds
NEVER_TWICE, ROUNDS = "never_twice", "rounds"
ONLY_EDITED = N_("You have no right to operate jobs of this executor group: choose Save alone")


def is_saving() -> bool:
    """Return whether the form was sent to be saved; without scripts its preview button sends it, too."""
    return request.method == "POST" and "preview" not in request.form


def save(form: JobForm, job: Job | None = None) -> ResponseReturnValue | None:
    """Store the new or changed job and do what the button says; None with the errors in the form."""
    action = request.form.get("then", "")
    keep_line_ends(form["executor_param"])
    errors = InputErrors()
    with errors:
        _read_parameters(form, job)
    try:
        draft = draft_of(form, settings())
        draft = replace(draft, unreadable=(*draft.unreadable, *errors.errors))
        if action and _may_only_edit(draft.job_group):
            draft = replace(draft, unreadable=(*draft.unreadable, InvalidInput("jobGroup", ONLY_EDITED)))
        if job is None and draft.glue_type != GlueType.BEAN:
            draft = replace(draft, executor_handler="")  # It may have been filled in before the run mode.
        job_id = job.id if job is not None else 0
        work = partial(_store, draft=draft, job_id=job_id, state=stale.form_fingerprint(), action=action)
        job_id, trigger = transact(work)
    except InvalidInput as exc:
        form.refuse(exc)
        return None
    except DeniedValue as exc:
        refusals.note_error(exc)
        form.refuse(InvalidInput(exc.field, exc.reason))
        return None
    except ChangedMeanwhile as exc:
        stale.refuse(form, exc, _last_change(job_id, exc.present), url_for("jobs.edit", job_id=job_id))
        return None
    except Conflict as exc:  # The job cannot run now, so that nothing was saved.
        form.refuse(InvalidInput("", exc.args[0]))
        return None
    page = url_for("jobs.show", job_id=job_id)
    if trigger is not None:
        return after_run(trigger, back=page)
    notice = "added_started" if action == START else "saved" if job is not None else "added"
    return done(notice, page, of=Subject("job", job_id, draft.job_desc))


def _read_parameters(form: JobForm, job: Job | None) -> None:
    """Compose the job's parameter from the fields, if they were sent; raises InvalidInput."""
    offer_parameters(form)
    if job is not None and form.parameters is not None and form.parameters.is_unchanged:
        return  # The fields are those of the same text, even if the handler would refuse it.
    text = sent_parameter(form.parameters)
    if text is not None:
        form["executor_param"].data = text


def offer_parameters(form: JobForm) -> None:
    """Offer the fields of a typed handler in a group whose jobs the user may edit."""
    group_id, handler = form.job_group.data or 0, (form["executor_handler"].data or "").strip()
    if current_actor().may(group_id, Right.EDIT):
        text = form["executor_param"].data or ""
        form.parameters = parameters_of(group_id, handler, form.glue_type.data or GlueType.BEAN, text)


def _store(
    session: Session, *, draft: JobDraft, job_id: int, state: str, action: str
) -> tuple[int, Trigger | None]:
    """Store the job; return its id, and the trigger that runs it or None."""
    actor = current_actor()
    if job_id:
        if state:
            changes.hold_job(
                session,
                job_id,
                gets_children=bool(draft.child_jobid.strip()),
                runs_after=draft.runs_after,
            )
            job = jobs.get_job(session, job_id, actor=actor, right=Right.EDIT)
            require_unchanged(state, version_history.present_fields(session, job))
        jobs.update_job(session, job_id, draft, actor=actor, clock=now_ms)
    else:
        draft = with_template(draft, actor)
        job_id = jobs.add_job(session, draft, actor=actor, clock=now_ms, start=action == START)
    if action != RUN:
        return job_id, None
    run = jobs.trigger_job(
        session, job_id, executor_param=None, address_list="", actor=actor, now_ms=now_ms()
    )
    return job_id, run.trigger


def _last_change(job_id: int, present: str) -> LastChange | None:
    """Return author and time of the job's present values; None if no version has them."""
    with read_scope() as session:
        history, _more = version_history.list_versions(session, job_id, actor=current_actor(), limit=1)
    matches = [version for version in history if fingerprint(version.fields) == present]
    return LastChange(matches[0].username, matches[0].at_ms) if matches else None


def _may_only_edit(group_id: int) -> bool:
    actor = current_actor()
    return actor.may(group_id, Right.EDIT) and not actor.may(group_id, Right.OPERATE)


def edit_page(form: JobForm, job: Job | None, heading: str, action: str) -> ResponseReturnValue:
    """Return the page with the form."""
    actor = current_actor()
    with read_scope() as session:
        groups = group_lists.find_visible(session, actor.group_ids(Right.EDIT))
        if len(groups) == 1 and not form.job_group.data:
            form.job_group.data = groups[0].id
        neighbours = _neighbours(session, form)
        handlers = choices.offer_handlers(session, form.job_group.data or 0, actor=actor)
        is_filled_in = _fill_in_handler(form, handlers.only)
        owner = ownership_of(session, job) if job is not None else None
        channel_names = [row.channel.name for row in find_visible(session, actor)]
        suggestions = _suggestions(session, job)
        has_limits = _offer_limits(session, form)
    if form.parameters is None:
        offer_parameters(form)
    offer(form, groups)
    form.offer_channels(channel_names, none=_("that of the executor, if it has one"))
    if owner is not None:
        form.mark_managed(MEMBER_OF[name].attribute for name in owner.members if name in MEMBER_OF)
    titles = (f"{group.title} ({group.app_name})" for group in groups if group.id == form.job_group.data)
    page = render_template(
        "jobs/edit.html",
        opened=("promises",) if suggestions else _fill_in_wish(form),
        form=form,
        parameters=form.parameters,
        job=job,
        owner=owner,
        heading=heading,
        action=action,
        cancel=url_for("jobs.show", job_id=job.id) if job is not None else url_for("jobs.index"),
        preview=preview_of_form(form, job),
        parameter_preview=preview_of_job(form, job.id if job is not None else None),
        config_zone=settings().time_zone,
        zones=zone_offsets(now_ms() // DAY_MS),
        **neighbours,
        handlers=handlers,
        is_filled_in=is_filled_in,
        group_text=next(titles, ""),
        job_fields=FIELD_OF,
        sections=SECTIONS,
        titles=form_sections.TITLES,
        notes=form_sections.notes(form),
        from_group=defaults_of(groups, form),
        suggestions=suggestions,
        has_limits=has_limits,
        mail_note=form_sections.mail_note(form["alarm_email"].data or ""),
        may_operate=actor.has_anywhere(Right.OPERATE),
    )
    return page, 400 if form.form_errors or form.wrong_fields else 200


def _neighbours(session: Session, form: JobForm) -> dict[str, Any]:
    """Return the children and predecessors in the form by name, and the next rounds."""
    actor, ids = current_actor(), picked_ids(form.after_jobs.data)
    predecessors = choices.name_jobs(session, ids, actor=actor)
    return {
        "children": choices.name_jobs(session, _valid_ids(form.child_jobid.data or ""), actor=actor),
        # One that the user may not view has its id alone.
        "predecessors": [
            choice if " " in choice.text else replace(choice, text=foreign_name()) for choice in predecessors
        ],
        "rounds": rounds_of(session, form),
    }


def _offer_limits(session: Session, form: JobForm) -> bool:
    """Offer the calendars, and the limits that the user may see; return whether there are any of these."""
    form.offer_calendars(calendars.list_names(session))
    group_ids = current_actor().group_ids(Right.VIEW)
    rows = limits.list_named(session, group_ids, limit=LIMITS_MAX)
    form.offer_limits([(limit.name, limit.slots) for limit in rows])
    return bool(rows)


def _fill_in_wish(form: JobForm) -> tuple[str, ...]:
    """Fill in that the job never runs twice at once, if that button was sent; return what to open."""
    wish = request.form.get("preview")
    if wish != NEVER_TWICE:
        return ("after",) if wish == ROUNDS else ()
    form["max_running"].data, form["when_full"].data = "1", WhenFull.WAIT.value
    return ("limits",)


def _suggestions(session: Session, job: Job | None) -> Suggestions | None:
    """Return what the job could promise, if that is asked for (``?suggest=1``)."""
    if job is None or "suggest" not in request.args:
        return None
    return find_suggestions(session, job, now_ms=now_ms())


def _fill_in_handler(form: JobForm, only: str) -> bool:
    """Fill in the only handler of the executors, in the empty form of a new job; return whether it was."""
    handler = form["executor_handler"]
    if request.method != "GET" or form.filled_from is not None or handler.data or not only:
        return False
    handler.data = only
    return True


def preview_of_form(form: JobForm, job: Job | None = None) -> Preview:
    """Return the preview of the schedule in the form; ``job`` is the one that is edited."""
    zone_name, errors = settings().time_zone, InputErrors()
    schedule = schedule_of(form, zone_name, errors)
    if errors.errors:
        return Preview(
            form.time_zone.data or zone_name,
            error=" ".join(translate(item.message) for item in errors.errors),
        )
    at_ms, group_id = now_ms(), form.job_group.data or 0
    instants = preview(schedule, language_of_request(), now_ms=at_ms)
    if not current_actor().may(group_id, Right.VIEW):
        return instants
    with read_scope() as session:
        return with_neighbours(session, instants, schedule, group_id, job, now_ms=at_ms)


def _valid_ids(text: str) -> list[int]:
    """Return the valid job ids of a child-jobs field; ignore the rest."""
    return [job_id for piece in text.split(",") if (job_id := to_id(piece.strip()))]
