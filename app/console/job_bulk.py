"""Several jobs at once, by the ticked rows of the list: asked first, then told of each job what became of it. Needs no scripts."""

from dataclasses import dataclass

from flask import Blueprint, jsonify, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.current import current_actor, say, say_error
from app.console.language import _, ngettext
from app.console.listing import here, ticked_ids
from app.console.notices import way_back
from app.db import read_scope
from app.domain.permissions import Right, require_right
from app.domain.tags import TAG_MAX, check_tag
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.services import job_bulk, jobs
from app.services.job_bulk import NEEDED, Act, Aim
from app.store import group_lists, overview
from app.store import jobs as job_store

blueprint = Blueprint("job_bulk", __name__, url_prefix="/jobinfo")

#: jobs the question names
NAMED = 5


@dataclass(frozen=True, slots=True)
class Told:
    """One line of the result."""

    job_id: int
    name: str
    error: str


@blueprint.route("/bulk/<any(start, stop, move, tag, untag, delete):act>", methods=["GET", "POST"])
def bulk(act: str) -> ResponseReturnValue:
    """Start, stop, move, tag or delete the ticked jobs."""
    found = _jobs(Act(act))
    if request.method == "POST":
        return _do(Act(act), found)
    return _question(Act(act), found)


def _question(act: Act, found: list[Job], error: str = "") -> str:
    with read_scope() as session:
        out = sum(overview.count_out(session, [job.id for job in found]).values())
        groups = group_lists.find_visible(session, current_actor().group_ids(Right.EDIT)) if act == Act.MOVE else []
    return render_template(
        "jobs/bulk.html",
        act=act,
        heading=_heading(act, len(found)),
        jobs=found,
        named=found[:NAMED],
        rest=max(0, len(found) - NAMED),
        consequences=_consequences(act, found, out),
        tag=request.form.get("tag", ""),
        tag_max=TAG_MAX,
        error=error,
        groups=groups,
        action=here(),
        back=way_back("jobs.index"),
    )


@blueprint.get("/running")
def running() -> ResponseReturnValue:
    """Return how many runs of each of these jobs are under way, as JSON; jobs the reader may not see are left out."""
    actor = current_actor()
    ids = ticked_ids(job_bulk.JOBS_MAX)
    with read_scope() as session:
        seen = [job.id for job in job_store.find_jobs(session, ids).values() if actor.may(job.job_group, Right.VIEW)]
        out = overview.count_out(session, seen)
    return jsonify({str(job_id): out.get(job_id, 0) for job_id in seen})


def _jobs(act: Act) -> list[Job]:
    """Return the ticked jobs; a missing or foreign one is not found, whatever the others are."""
    ids, actor = job_bulk.check_ids(ticked_ids(job_bulk.JOBS_MAX)), current_actor()
    with read_scope() as session:
        found = job_store.find_jobs(session, ids)
    for job_id in ids:
        if job_id not in found:
            raise NotFound(jobs.MISSING)
        require_right(actor, found[job_id].job_group, NEEDED[act], missing=jobs.MISSING)
    return [found[job_id] for job_id in ids]


def _do(act: Act, found: list[Job]) -> ResponseReturnValue:
    names = {job.id: job.job_desc for job in found}
    target = request.form.get("job_group", "")
    group_id = int(target) if target.isascii() and target.isdecimal() and len(target) <= 9 else 0
    aim = Aim(group_id, request.form.get("tag", ""))
    if act in {Act.TAG, Act.UNTAG}:
        try:
            check_tag(aim.tag)
        except InvalidInput as exc:
            return _question(act, found, say(exc.message)), 400
    outcomes = job_bulk.change_all(act, list(names), aim, actor=current_actor(), now_ms=now_ms())
    told = [Told(each.job_id, names[each.job_id], say_error(each.error) if each.error else "") for each in outcomes]
    failed = sum(bool(each.error) for each in told)
    word = _done_word(act)
    page = render_template("jobs/bulk_result.html", told=told, failed=failed, word=word, act=act, back=way_back("jobs.index"))
    return page, 200 if failed < len(told) else 400


def _done_word(act: Act) -> str:
    words = {Act.START: _("started"), Act.STOP: _("stopped"), Act.MOVE: _("moved"), Act.REMOVE: _("deleted")}
    return words.get(act) or (_("tagged") if act is Act.TAG else _("tag removed"))


def _heading(act: Act, count: int) -> str:
    match act:
        case Act.START:
            return ngettext("Start %(num)d job?", "Start %(num)d jobs?", count)
        case Act.STOP:
            return ngettext("Stop %(num)d job?", "Stop %(num)d jobs?", count)
        case Act.MOVE:
            return ngettext("Move %(num)d job to another executor?", "Move %(num)d jobs to another executor?", count)
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
            return [_("No further run begins by the schedule. Runs under way go on; it can still be run by hand.")]
        case Act.MOVE:
            return [_("The next runs go to the executors of the other group; the runs so far stay in the log of the old one.")]
        case Act.TAG:
            return [_("Jobs that have the tag already stay as they are, in whatever case it is written.")]
        case Act.UNTAG:
            return [_("Jobs without the tag stay as they are. The case it is written in does not matter.")]
        case Act.REMOVE:
            lost = [_("Runs under way: %(n)s. They go on, but their results are lost.", n=out)] if out else []
            return [_("Their runs, their log and their GLUE versions are deleted with them. This cannot be undone."), *lost]
