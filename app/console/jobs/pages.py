"""Job pages: list, one job, add, edit, copy, next run times, instances."""

from functools import partial

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.jobs.detail import LIVE_TABS, TABS, page_of
from app.console.jobs.form import sections as form_sections
from app.console.jobs.form.draft import form_of, new_values, offer, quick_form
from app.console.jobs.form.edit_page import edit_page, is_saving, offer_parameters, preview_of_form, save
from app.console.jobs.form.forms import SECTIONS, JobForm
from app.console.jobs.form.schedule_preview import Preview
from app.console.jobs.form.week import week_of
from app.console.jobs.history.version_words import drift_words, label, stored_value
from app.console.jobs.lists.filter import (
    filter_labels,
    filter_parameters,
    requested_filter,
    tag_url_prefix,
)
from app.console.jobs.lists.job_cells import cell_finder, chip, cut, last_finder, schedule_words
from app.console.jobs.lists.search import code_values, last_values, read_search, status_values
from app.console.jobs.lists.tabs import job_tabs
from app.console.ui import live_parts
from app.console.ui.lists.listing import address_with, chips, fetch_requested, whole_number
from app.console.ui.lists.sorting import JOBS, Sorting
from app.console.ui.saved_views import views_of
from app.console.web.access import Access
from app.console.web.current import current_actor, current_user, settings
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.jobs.members import read_members
from app.domain.lists.filters import ListName
from app.domain.text.fingerprints import fingerprint
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.job import Job
from app.services.code.ownership import ownership_of
from app.services.executors import instances
from app.services.jobs import choices, jobs
from app.services.jobs.tags import tags_of
from app.services.report.failing import LOOKED_AT_OF_ONE, of_job
from app.services.report.job_views import count_of_groups, count_views, failing_of_rows
from app.services.runs import rows
from app.services.runs.reasons import find_reasons
from app.store.executors import groups as group_store
from app.store.executors import listing as group_lists

blueprint = Blueprint("jobs", __name__)
blueprint.add_app_template_filter(cut)
blueprint.add_app_template_filter(chip)
blueprint.add_app_template_filter(schedule_words)
blueprint.add_app_template_filter(label, "member_label")
blueprint.add_app_template_filter(stored_value, "member_value")
POLICY = {
    "index": Access.LOGIN,
    "show": Access.VIEW,
    "add": Access.EDIT,
    "copy": Access.EDIT,
    "edit": Access.EDIT,
    "preview_part": Access.LOGIN,
    "note_part": Access.LOGIN,
    "parameters_part": Access.LOGIN,
    "next_times": Access.VIEW,
    "nodes": Access.VIEW,
}


@blueprint.get("/jobinfo")
def index() -> ResponseReturnValue:
    """List the jobs; filters in the search text (``?q=tag:nightly``) become parameters of the URL."""
    actor = current_actor()
    with read_scope() as session:
        job_filter = requested_filter(session, is_exact=False)
        groups = group_lists.find_visible(session, actor.group_ids(Right.VIEW))
        search = read_search(request.args.get("q", ""), groups)
        if search.parameters and not search.hints:
            return redirect(address_with(page=None, q=search.text or None, **search.parameters))
        page, paging = fetch_requested(partial(jobs.list_rows, session, job_filter, actor=actor))
        job_rows = rows.job_rows(session, page.rows, actor=actor, now_ms=now_ms())
        failing = failing_of_rows(session, job_rows, actor=actor)
        shown_groups = {row.job.job_group for row in job_rows} if job_filter.by_group else set()
        sizes = count_of_groups(session, job_filter, shown_groups, actor=actor) if shown_groups else {}
        links = views_of(session, ListName.JOBS)
        tabs = job_tabs(links, count_views(session, job_filter, actor=actor))
        editable = [group for group in groups if not job_rows and actor.may(group.id, Right.EDIT)]
        only_group_id = editable[0].id if len(editable) == 1 else 0
        handlers = choices.offer_handlers(session, only_group_id, actor=actor) if only_group_id else None
    active = chips(filter_labels(job_filter, groups))
    return render_template(
        "jobs/index.html",
        rows=job_rows,
        sizes=sizes,
        cells_of=cell_finder(tag_url_prefix(), failing),
        last_of=last_finder(failing),
        groups=groups,
        filter=job_filter,
        active=active,
        search=search,
        choices={"triggerStatus": status_values(), "last": last_values(), "code": code_values()},
        paging=paging,
        sorting=Sorting(JOBS, job_filter.order),
        may_edit=actor.has_anywhere(Right.EDIT),
        editable=editable,
        handlers=handlers or choices.HandlerOffer(),
        may_operate=actor.has_anywhere(Right.OPERATE),
        export_query=filter_parameters(),
        tabs=tabs,
        save_href=links.save_href,
    )


@blueprint.get("/jobinfo/<int(max=2147483647):job_id>")
def show(job_id: int) -> ResponseReturnValue:
    """Show one job, a tab at a time: ``?tab=`` is one of ``detail.TABS``."""
    actor, at_ms = current_actor(), now_ms()
    tab = request.args.get("tab", "")
    tab = tab if tab in TABS else "overview"
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=actor)
        row = rows.job_rows(session, [job], actor=actor, now_ms=at_ms)[0]
        tab_values = page_of(session, job, tab, actor=actor, now_ms=at_ms)
        owner = ownership_of(session, job)
        drift = drift_words(session, owner.drift, actor=actor) if owner is not None else []
        is_overview = tab == "overview"
        unknown = choices.find_unknown_handler(session, job, row.group) if is_overview else None
        group_ids = actor.group_ids(Right.VIEW)
        failing = of_job(session, job_id, group_ids=group_ids) if tab in LIVE_TABS else None
        why = find_reasons(session, [failing.last] if failing else [])
        preview = _preview_of(job) if is_overview else None
        # A refresh takes parts only, and the week is in none.
        with_week = preview is not None and not preview.error and not live_parts.is_refresh()
        week = week_of(session, job, preview, now_ms=at_ms) if preview is not None and with_week else None
    return render_template(
        "jobs/show.html",
        unknown_handler=unknown,
        failing=failing,
        why=why[failing.last.id] if failing else "",
        failing_looked_at=LOOKED_AT_OF_ONE[-1] - 1,
        live_tabs=LIVE_TABS,
        job=job,
        row=row,
        owner=owner,
        drift=drift,
        group=row.group,
        page=tab_values,
        tab=tab,
        tabs=TABS,
        preview=preview,
        week=week,
    )


@blueprint.route("/jobinfo/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a job; ``?jobGroup=`` and ``?handler=`` fill in the form."""
    user = current_user()
    author = user.username if user else ""
    is_quick = request.method == "POST" and "quick" in request.form
    form = (
        quick_form(request.form, author)
        if is_quick
        else JobForm(
            request.form,
            data=new_values(whole_number("jobGroup", 0), author, request.args.get("handler", "")),
        )
    )
    answer = save(form) if is_saving() else None
    return answer or edit_page(form, None, _("Add a job"), url_for("jobs.add"))


@blueprint.route("/jobinfo/<int(max=2147483647):job_id>/copy", methods=["GET", "POST"])
def copy(job_id: int) -> ResponseReturnValue:
    """Add a copy of a job."""
    form = _form_of(job_id)[0]
    answer = save(form) if is_saving() else None
    return answer or edit_page(
        form, None, _("Copy job %(id)s", id=job_id), url_for("jobs.copy", job_id=job_id)
    )


@blueprint.route("/jobinfo/<int(max=2147483647):job_id>/edit", methods=["GET", "POST"])
def edit(job_id: int) -> ResponseReturnValue:
    """Change a job."""
    form, job = _form_of(job_id)
    form.glue_type.data = job.glue_type
    answer = save(form, job) if is_saving() else None
    return answer or edit_page(form, job, _("Edit the job"), url_for("jobs.edit", job_id=job_id))


def _form_of(job_id: int) -> tuple[JobForm, Job]:
    """Return the form, filled from a job that the user may edit, and the job."""
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor(), right=Right.EDIT)
        tags = tags_of(session, job_id)
    state = fingerprint(read_members(job, tags))
    return form_of(job, settings().time_zone, tags, form_data=request.form, fingerprint=state), job


@blueprint.get("/jobinfo/preview")
def preview_part() -> ResponseReturnValue:
    """Return the preview of the schedule in the form while it is edited.

    ``?jobId=`` is the job that the form was filled from: its bounds stand for their texts. ``copy``: it is
    another one than that in the form.
    """
    form, job_id = JobForm(request.args), whole_number("jobId", 0)
    job = None
    if job_id:
        origin_form, origin = _form_of(job_id)
        form.bounds = origin_form.bounds
        job = None if "copy" in request.args else origin
        form.filled_from = job.id if job is not None else None
    return render_template("jobs/_preview.html", preview=preview_of_form(form, job))


@blueprint.get("/jobinfo/summary/<section>")
def note_part(section: str) -> ResponseReturnValue:
    """Return what a folded section of the form changes while it is edited."""
    if section not in SECTIONS:
        raise NotFound(N_("There is no such section"))
    form = JobForm(request.args)
    offer(form, [])
    note = form_sections.note(form, section)
    mail_note = form_sections.mail_note(form["alarm_email"].data or "") if section == "alarms" else None
    return render_template("jobs/_note.html", note=note, mail_note=mail_note)


@blueprint.get("/jobinfo/parameters")
def parameters_part() -> ResponseReturnValue:
    """Return the parameter of a job, as fields if its handler is typed; nothing if it stays a text."""
    form = JobForm(request.args)
    offer_parameters(form)
    if form.parameters is None and "shown" not in request.args:
        return "", 204
    return render_template("jobs/_job_parameters.html", form=form, parameters=form.parameters)


@blueprint.get("/jobinfo/<int(max=2147483647):job_id>/next-times")
def next_times(job_id: int) -> ResponseReturnValue:
    """Show the next five instants of a job."""
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor())
    return render_template("jobs/next_times.html", job=job, preview=_preview_of(job))


@blueprint.get("/jobinfo/<int(max=2147483647):job_id>/nodes")
def nodes(job_id: int) -> ResponseReturnValue:
    """Show the instances of the job's executor group."""
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor())
        group = group_store.find_groups(session, [job.job_group]).get(job.job_group)
        group_instances = (
            instances.find_instances(session, group, now_ms=now_ms())
            if group is not None
            else instances.Instances([], 0)
        )
    unusable = group_instances.unusable(settings().executor_networks)
    return render_template(
        "jobs/nodes.html",
        job=job,
        group=group,
        instances=group_instances,
        unusable=unusable,
        back=url_for("jobs.index"),
    )


def _preview_of(job: Job) -> Preview:
    return preview_of_form(form_of(job, settings().time_zone))
