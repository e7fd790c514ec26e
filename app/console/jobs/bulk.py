"""Several jobs at once, by the ticked rows of the list or by its filters: asked first, then told of each job what became of it.

Needs no scripts. Many jobs are changed in pieces: each request changes some and shows how far it is.
"""

from dataclasses import dataclass

from flask import Blueprint, jsonify, redirect, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.jobs.bulk_progress import Progress, asked_key, new_key, read_progress
from app.console.jobs.list_filter import requested_filter
from app.console.ui.listing import address_with, here, ticked_ids
from app.console.ui.notices import way_back
from app.console.ui.typed_phrase import deletion_phrase, require_phrase
from app.console.web.access import Access
from app.console.web.current import current_actor, translate, translate_error
from app.console.web.language import _, ngettext
from app.db import read_scope
from app.domain.permissions import Right, require_right
from app.domain.tags import TAG_MAX, check_tag
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.services.jobs import bulk as job_bulk
from app.services.jobs import jobs
from app.services.jobs.bulk import MATCHING_MAX, NEEDED, Act, Aim
from app.store import group_lists, overview
from app.store import jobs as job_store
from app.store.paging import to_id

blueprint = Blueprint("job_bulk", __name__, url_prefix="/jobinfo")
POLICY = {
    "bulk": Access.VIEW,
    "running": Access.VIEW,
}

#: jobs the question names
NAMED = 5


@dataclass(frozen=True, slots=True)
class Told:
    """One line of the result."""

    job_id: int
    name: str
    error: str
    already: bool


@blueprint.route("/bulk/<any(start, stop, run, move, tag, untag, delete):act>", methods=["GET", "POST"])
def bulk(act: str) -> ResponseReturnValue:
    """Start, stop, run, move, tag or delete the ticked jobs, or all that match the filters (``?matching=1``)."""
    if request.method == "POST" and "state" in request.form:
        return _do(Act(act), read_progress(request.form["state"], act))
    found, left_out = _asked_jobs(Act(act))
    if request.method == "POST":
        try:
            if act == Act.REMOVE and len(found) > 1:
                require_phrase(deletion_phrase(len(found)))
            if act in {Act.TAG, Act.UNTAG}:
                check_tag(request.form.get("tag", ""))
        except InvalidInput as exc:
            return _question(Act(act), found, left_out, translate(exc.message)), 400
        names = {job.id: job.job_desc for job in found}
        return _do(Act(act), Progress(list(names), names, key=asked_key(request.form.get("once", ""))))
    if (
        act == Act.RUN and "once" not in request.args
    ):  # in the address, so that a browser that goes back asks the same question
        return redirect(address_with(once=new_key()), 303)
    return _question(Act(act), found, left_out)


@blueprint.get("/running")
def running() -> ResponseReturnValue:
    """Return how many runs of each of these jobs are under way, as JSON; jobs the reader may not see are left out."""
    actor = current_actor()
    ids = ticked_ids(job_bulk.JOBS_MAX)
    with read_scope() as session:
        seen = [
            job.id
            for job in job_store.find_jobs(session, ids).values()
            if actor.may(job.job_group, Right.VIEW)
        ]
        out = overview.count_out(session, seen)
    return jsonify({str(job_id): out.get(job_id, 0) for job_id in seen})


def _asked_jobs(act: Act) -> tuple[list[Job], int]:
    """Return the jobs asked for, and how many that match the filters are left out because one may not change them."""
    if request.method == "GET" and "matching" in request.args:
        with read_scope() as session:
            ids, left_out = job_bulk.find_matching(session, act, requested_filter(), actor=current_actor())
        return _jobs(act, ids), left_out
    listed = request.form.get("ids", "")
    ids = [to_id(text) for text in listed.split(",")] if listed else ticked_ids(job_bulk.JOBS_MAX)
    return _jobs(act, job_bulk.check_ids(ids, MATCHING_MAX if listed else job_bulk.JOBS_MAX)), 0


def _jobs(act: Act, ids: list[int]) -> list[Job]:
    """Return the jobs; a missing or foreign one is not found, whatever the others are."""
    actor = current_actor()
    with read_scope() as session:
        found = job_store.find_jobs(session, job_bulk.check_ids(ids, MATCHING_MAX))
    for job_id in ids:
        if job_id not in found:
            raise NotFound(jobs.MISSING)
        require_right(actor, found[job_id].job_group, NEEDED[act], missing=jobs.MISSING)
    return [found[job_id] for job_id in ids]


def _question(act: Act, found: list[Job], left_out: int, error: str = "") -> str:
    with read_scope() as session:
        out = sum(overview.count_out(session, [job.id for job in found]).values())
        groups = (
            group_lists.find_visible(session, current_actor().group_ids(Right.EDIT))
            if act == Act.MOVE
            else []
        )
    consequences = _consequences(act, found, out)
    if left_out:
        consequences.append(_("Left out, because you may not change them: %(n)s.", n=left_out))
    return render_template(
        "jobs/bulk.html",
        act=act,
        heading=_heading(act, len(found)),
        once=asked_key(request.args.get("once", "")),
        ids=",".join(str(job.id) for job in found),
        named=found[:NAMED],
        rest=max(0, len(found) - NAMED),
        consequences=consequences,
        phrase=deletion_phrase(len(found)) if act == Act.REMOVE and len(found) > 1 else "",
        tag=request.form.get("tag", ""),
        tag_max=TAG_MAX,
        error=error,
        groups=groups,
        action=here(),
        back=way_back("jobs.index"),
    )


def _do(act: Act, progress: Progress) -> ResponseReturnValue:
    """Change some jobs; show how far it is, or at the end what became of each."""
    aim = Aim(to_id(request.form.get("job_group", "")), request.form.get("tag", ""), progress.key)
    for each in job_bulk.change_piece(act, progress.rest, aim, actor=current_actor(), clock=now_ms):
        progress.note(each.job_id, translate_error(each.error) if each.error else "", already=each.already)
    told = [
        Told(job_id, progress.names[job_id], progress.errors.get(job_id, ""), job_id in progress.already)
        for job_id in progress.ids[: progress.count]
    ]
    shown = {
        "act": act,
        "word": _word(act),
        "failed": len(progress.errors),
        "back": way_back("jobs.index"),
        "progress": progress,
    }
    if progress.rest:
        return render_template("jobs/bulk_progress.html", aim=aim, action=here(), heading=_word(act), **shown)
    page = render_template("jobs/bulk_result.html", told=told, all=len(progress.ids), **shown)
    return page, 200 if len(progress.errors) < len(told) else 400


def _word(act: Act) -> str:
    match act:
        case Act.START:
            return _("started")
        case Act.STOP:
            return _("stopped")
        case Act.RUN:
            return _("queued")
        case Act.MOVE:
            return _("moved")
        case Act.TAG:
            return _("tagged")
        case Act.UNTAG:
            return _("tag removed")
        case Act.REMOVE:
            return _("deleted")


def _heading(act: Act, count: int) -> str:
    match act:
        case Act.START:
            return ngettext("Start %(num)d job?", "Start %(num)d jobs?", count)
        case Act.STOP:
            return ngettext("Stop %(num)d job?", "Stop %(num)d jobs?", count)
        case Act.RUN:
            return ngettext("Run %(num)d job once?", "Run %(num)d jobs once?", count)
        case Act.MOVE:
            return ngettext(
                "Move %(num)d job to another executor?", "Move %(num)d jobs to another executor?", count
            )
        case Act.TAG:
            return ngettext("Add a tag to %(num)d job", "Add a tag to %(num)d jobs", count)
        case Act.UNTAG:
            return ngettext("Remove a tag from %(num)d job", "Remove a tag from %(num)d jobs", count)
        case Act.REMOVE:
            return ngettext("Delete %(num)d job?", "Delete %(num)d jobs?", count)


def _consequences(act: Act, found: list[Job], out: int) -> list[str]:
    """Return what comes of it, a sentence each."""
    match act:
        case Act.START:
            idle = sum(job.schedule_type == "NONE" for job in found)
            return [_("Jobs without a schedule, which cannot be started: %(n)s.", n=idle)] if idle else []
        case Act.STOP:
            return [
                _("No further run begins by the schedule. Runs under way go on; it can still be run by hand.")
            ]
        case Act.RUN:
            return [
                _(
                    "Each is queued once, with its own parameter, whatever its schedule. Children run after a success as always."
                )
            ]
        case Act.MOVE:
            return [
                _(
                    "The next runs go to the executors of the other group; the runs so far stay in the log of the old one."
                )
            ]
        case Act.TAG:
            return [_("Jobs that have the tag already stay as they are, in whatever case it is written.")]
        case Act.UNTAG:
            return [_("Jobs without the tag stay as they are. The case it is written in does not matter.")]
        case Act.REMOVE:
            lost = [_("Runs under way: %(n)s. They go on, but their results are lost.", n=out)] if out else []
            return [
                _(
                    "Their runs, their log and their GLUE versions are deleted with them. This cannot be undone."
                ),
                *lost,
            ]
