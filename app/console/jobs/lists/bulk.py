"""Bulk changes of the ticked jobs, or of all that match the filters: confirmed first, then done by a task."""

from flask import Blueprint, redirect, render_template, request
from flask.typing import ResponseReturnValue

from app.console.jobs.lists.filter import requested_filter
from app.console.ui import tasks
from app.console.ui.filters import comma_list
from app.console.ui.forms.typed_phrase import deletion_phrase, require_phrase
from app.console.ui.lists.listing import address_with, here, ticked_ids
from app.console.ui.notices import way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, translate
from app.console.web.language import _, ngettext
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right, require_right
from app.domain.jobs.tags import TAG_MAX, check_tag
from app.domain.tasks import TaskKind
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.services.jobs import bulk as job_bulk
from app.services.jobs import jobs
from app.services.jobs.bulk import MATCHING_MAX, REQUIRED_RIGHTS, BulkAction, BulkParams
from app.store.base.paging import to_id
from app.store.executors import groups as group_store
from app.store.executors import listing as group_lists
from app.store.jobs import scheduling as job_store
from app.store.pickers import overview

blueprint = Blueprint("job_bulk", __name__, url_prefix="/jobinfo")
POLICY = {
    "bulk": Access.VIEW,
}

#: most jobs that the question names
NAMES_MAX = 5


@blueprint.route("/bulk/<any(start, stop, run, move, tag, untag, delete):act>", methods=["GET", "POST"])
def bulk(act: str) -> ResponseReturnValue:
    """Change the ticked jobs, or all that match the filters (``?matching=1``)."""
    action = BulkAction(act)
    if request.method == "POST":
        parameters = job_bulk.stored_params(_params(action, list(dict.fromkeys(_requested_ids()))))
        redirection = tasks.redirect_to_existing_task(TaskKind.BULK, parameters, back=way_back("jobs.index"))
        if redirection is not None:
            return redirection
    targets, left_out = _requested_jobs(action)
    if request.method == "POST":
        try:
            return _submit(action, targets)
        except InvalidInput as exc:
            return _question(action, targets, left_out, translate(exc.message)), 400
    if action == BulkAction.RUN and tasks.FORM_KEY not in request.args:
        # The key is in the URL, so that a browser that goes back shows the same form.
        return redirect(address_with(**{tasks.FORM_KEY: tasks.new_form_key()}), 303)
    return _question(action, targets, left_out)


def _requested_jobs(action: BulkAction) -> tuple[list[Job], int]:
    """Return the requested jobs, and the number of matching jobs the user may not change."""
    if request.method == "GET" and "matching" in request.args:
        with read_scope() as session:
            ids, left_out = job_bulk.find_matching(
                session, action, requested_filter(session), actor=current_actor()
            )
        return _jobs(action, ids), left_out
    limit = MATCHING_MAX if request.form.get("ids") else job_bulk.JOBS_MAX
    return _jobs(action, job_bulk.check_ids(_requested_ids(), limit)), 0


def _requested_ids() -> list[int]:
    id_list = request.form.get("ids", "")
    return [to_id(text) for text in id_list.split(",")] if id_list else ticked_ids(job_bulk.JOBS_MAX)


def _params(action: BulkAction, ids: list[int]) -> BulkParams:
    return BulkParams(action, ids, to_id(request.form.get("job_group", "")), request.form.get("tag", ""))


def _jobs(action: BulkAction, ids: list[int]) -> list[Job]:
    """Return the jobs; raises NotFound for one the user may not see, PermissionDenied without the right."""
    actor = current_actor()
    with read_scope() as session:
        targets = job_store.find_jobs(session, job_bulk.check_ids(ids, MATCHING_MAX))
    for job_id in ids:
        if job_id not in targets:
            raise NotFound(jobs.MISSING)
        require_right(actor, targets[job_id].job_group, REQUIRED_RIGHTS[action], missing=jobs.MISSING)
    return [targets[job_id] for job_id in ids]


def _submit(action: BulkAction, targets: list[Job]) -> ResponseReturnValue:
    """Submit the task; raises InvalidInput."""
    params = _params(action, [job.id for job in targets])
    if action == BulkAction.REMOVE and len(targets) > 1:
        require_phrase(deletion_phrase(len(targets)))
    if action in {BulkAction.TAG, BulkAction.UNTAG}:
        check_tag(params.tag)
    draft = job_bulk.draft_task(params, form_key=tasks.requested_form_key())
    return tasks.submit(draft, back=way_back("jobs.index"))


def _question(action: BulkAction, targets: list[Job], left_out: int, error: str = "") -> str:
    with read_scope() as session:
        out = sum(overview.count_out(session, [job.id for job in targets]).values())
        editable = current_actor().group_ids(Right.EDIT)
        groups = group_lists.find_visible(session, editable) if action == BulkAction.MOVE else []
        group_by_id = group_store.find_groups(session, {job.job_group for job in targets[:NAMES_MAX]})
    consequences = _consequences(action, targets, out)
    if left_out:
        consequences.append(_("Skipped, because you may not change them: %(n)s.", n=left_out))
    return render_template(
        "jobs/bulk.html",
        action=action,
        heading=_heading(action, len(targets)),
        form_key=tasks.requested_form_key(),
        ids=",".join(str(job.id) for job in targets),
        named=targets[:NAMES_MAX],
        titles={group_id: group.title or group.app_name for group_id, group in group_by_id.items()},
        rest=max(0, len(targets) - NAMES_MAX),
        consequences=consequences,
        phrase=deletion_phrase(len(targets)) if action == BulkAction.REMOVE and len(targets) > 1 else "",
        tag=request.form.get("tag", ""),
        tag_max=TAG_MAX,
        error=error,
        groups=groups,
        target=here(),
        back=way_back("jobs.index"),
    )


def _heading(action: BulkAction, count: int) -> str:
    match action:
        case BulkAction.START:
            return ngettext(
                "Switch on the schedule of %(num)d job?", "Switch on the schedules of %(num)d jobs?", count
            )
        case BulkAction.STOP:
            return ngettext(
                "Switch off the schedule of %(num)d job?", "Switch off the schedules of %(num)d jobs?", count
            )
        case BulkAction.RUN:
            return ngettext("Run %(num)d job once?", "Run %(num)d jobs once?", count)
        case BulkAction.MOVE:
            return ngettext(
                "Move %(num)d job to another executor group?",
                "Move %(num)d jobs to another executor group?",
                count,
            )
        case BulkAction.TAG:
            return ngettext("Add a tag to %(num)d job", "Add a tag to %(num)d jobs", count)
        case BulkAction.UNTAG:
            return ngettext("Remove a tag from %(num)d job", "Remove a tag from %(num)d jobs", count)
        case BulkAction.REMOVE:
            return ngettext("Delete %(num)d job?", "Delete %(num)d jobs?", count)


def _consequences(action: BulkAction, targets: list[Job], out: int) -> list[str]:
    """Return the consequences of the action, one sentence each."""
    match action:
        case BulkAction.START:
            idle = sum(job.schedule_type == "NONE" for job in targets)
            return [_("Jobs without a schedule, which cannot be switched on: %(n)s.", n=idle)] if idle else []
        case BulkAction.STOP:
            text = _(
                "The schedules start no further runs. "
                "Runs in progress continue; you can still run the jobs once."
            )
            return [text, *_follower_texts(targets)]
        case BulkAction.RUN:
            return [
                _(
                    "Each job is queued once, with its own parameter, whether its schedule is on or off. "
                    "Child jobs run after a success as always."
                )
            ]
        case BulkAction.MOVE:
            return [
                _(
                    "The next runs go to the executors of the other group; "
                    "earlier runs stay in the log of the old one."
                )
            ]
        case BulkAction.TAG:
            return [_("Jobs that already have the tag stay as they are. Case is ignored.")]
        case BulkAction.UNTAG:
            return [_("Jobs without the tag stay as they are. Case is ignored.")]
        case BulkAction.REMOVE:
            warnings = (
                [_("Runs in progress: %(n)s. They continue, but their results are lost.", n=out)]
                if out
                else []
            )
            text = _("Their runs, logs and versions are deleted with them. This cannot be undone.")
            return [text, *warnings, *_follower_texts(targets)]


def _follower_texts(targets: list[Job]) -> list[str]:
    """Name the jobs of an action that others run after."""
    ids = [job.id for job in targets if job.has_followers]
    names = comma_list(ids[:NAMES_MAX]) + (" …" if len(ids) > NAMES_MAX else "")
    return [_("Other jobs run after these and may go without a run: %(ids)s", ids=names)] if ids else []
