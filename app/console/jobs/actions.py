"""Job actions: switch on and off, run once, delete, kill. All but the switch first name the consequences."""

from functools import partial

from flask import Blueprint, jsonify, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import Millis, now_ms
from app.console.jobs.form.forms import RunForm
from app.console.jobs.form.parameter_preview import preview_of_run, run_to_repeat
from app.console.jobs.form.parameters import ParameterForm, parameters_of, sent_parameter
from app.console.jobs.form.run_times import input_text, requested_logical, requested_start
from app.console.jobs.run_once import after_run
from app.console.ui import tasks
from app.console.ui.calendars.blackout_words import lines_of_job
from app.console.ui.filters import absolute, comma_list, reader_zone
from app.console.ui.forms.base_form import keep_line_ends
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.limits.words import shares_in
from app.console.ui.lists.listing import whole_number
from app.console.ui.notices import Subject, done, toast_of, way_back
from app.console.ui.rounds.of_job import find_following
from app.console.web.access import Access
from app.console.web.current import current_actor, executor_caller, settings
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope, transact
from app.domain.access.permissions import Right
from app.domain.enums import ParamForm
from app.domain.executors.draining import leave_out
from app.domain.runs.logical_times import logical_of
from app.domain.runs.trigger_keys import Trigger
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.models.job import Job
from app.models.log import JobLog
from app.services.calendars.by_hand import find_refusal
from app.services.jobs import jobs
from app.services.jobs.run_forms import trigger_by_form
from app.services.jobs.triggers import InChain
from app.services.rounds.effects import find_affected
from app.services.runs import logs
from app.services.runs.run_actions import address_to_repeat, kill_runs, param_to_repeat
from app.store.calendars import current_book
from app.store.executors import drains
from app.store.executors import groups as group_store
from app.store.pickers import overview
from app.store.runs import listing as log_lists

blueprint = Blueprint("job_actions", __name__, url_prefix="/jobinfo/<int(max=2147483647):job_id>")
POLICY = {
    "start": Access.OPERATE,
    "stop": Access.OPERATE,
    "run": Access.OPERATE,
    "remove": Access.EDIT,
    "kill": Access.OPERATE,
}

#: most runs killed by one request
KILLED_MAX = 20
#: recent parameters offered
USED_SHOWN = 5


@blueprint.post("/start")
def start(job_id: int) -> ResponseReturnValue:
    """Switch the schedule on."""
    return _switch(job_id, on=True)


@blueprint.post("/stop")
def stop(job_id: int) -> ResponseReturnValue:
    """Switch the schedule off; runs in progress continue."""
    return _switch(job_id, on=False)


@blueprint.route("/delete", methods=["GET", "POST"])
def remove(job_id: int) -> ResponseReturnValue:
    """Delete the job."""
    job = _job(job_id, Right.EDIT)
    if request.method == "POST":
        jobs.clear_before_removal(job_id, actor=current_actor(), clock=now_ms)
        transact(partial(jobs.remove_job, job_id=job_id, actor=current_actor(), now_ms=now_ms()))
        back = way_back("jobs.index")
        back = back if f"/jobinfo/{job_id}" not in back else url_for("jobs.index")
        return done("removed", back, of=_subject(job))
    with read_scope() as session:
        running = overview.count_out(session, [job_id]).get(job_id, 0)
        parents = overview.find_parents(session, job_id, group_ids=current_actor().group_ids(Right.VIEW))
        followers = find_affected(session, job_id, actor=current_actor()).direct_ids(job_id)
    consequences = [_("Its runs, logs and versions are deleted, too. This cannot be undone.")]
    if running:
        consequences.append(
            _("Runs in progress: %(n)s. They continue, but their results are lost.", n=running)
        )
    if parents:
        consequences.append(
            _("These jobs trigger it as a child and will no longer do so: %(ids)s", ids=comma_list(parents))
        )
    if followers:
        consequences.append(
            _("These jobs run after it and lose it as a predecessor: %(ids)s", ids=comma_list(followers))
        )
    question = Question(
        _("Delete the job?"), _name(job), consequences, _("Delete"), kind="danger", glyph="trash"
    )
    return confirm_page(question, back=way_back("jobs.index"))


@blueprint.route("/run", methods=["GET", "POST"])
def run(job_id: int) -> ResponseReturnValue:
    """Run the job once."""
    job = _job(job_id, Right.OPERATE)
    log = _run_to_repeat(job)
    parameter, shard_address, logical_ms = _values_of(job, log)
    # A box that an empty form does not name would be unticked.
    form = RunForm(
        request.form or None,
        executor_param=parameter,
        address_list=shard_address,
        logical_time=input_text(logical_ms),
        repeated_ms="" if logical_ms is None else str(logical_ms),
        chain="chain" in request.args,
    )
    parameters = parameters_of(job.job_group, job.executor_handler or "", job.glue_type, parameter)
    if request.method == "POST" and (answer := _queue(job, form, parameters, log)) is not None:
        return answer
    with read_scope() as session:
        blackout = lines_of_job(session, job_id, job.job_group, actor=current_actor(), now_ms=now_ms())
        group = group_store.find_groups(session, [job.job_group]).get(job.job_group)
        drains_of_group = drains.find_drained(session, [job.job_group]).get(job.job_group, frozenset())
        following = find_following(session, job, actor=current_actor())
        params = log_lists.find_used_params(session, job_id, group_id=job.job_group, limit=USED_SHOWN)
    if blackout.lines:
        form.force.label.text = _("Run it all the same")
    addresses = group.addresses if group is not None else []
    is_limited = bool(job.max_running or shares_in(job.limits) or (group is not None and group.max_running))
    values = {
        "addresses": addresses,
        "drained": leave_out(addresses, drains_of_group).left_out,
        "used": params,
    }
    page = render_template(
        "jobs/run.html",
        form=form,
        job=job,
        parameters=parameters,
        form_key=tasks.requested_form_key(),
        repeats=_run_to_continue(job, request.values.get("log", "")),
        cancel=way_back("jobs.index"),
        repeated=whole_number("log", 0),
        zone=reader_zone().key,
        parameter_preview=preview_of_run(job, form, log),
        is_limited=is_limited,
        blackout=blackout,
        following=following,
        **values,
    )
    return page, 400 if form.errors or (parameters and parameters.form.errors) else 200


def _queue(
    job: Job, form: RunForm, parameters: ParameterForm | None, log: JobLog | None
) -> ResponseReturnValue | None:
    """Queue the run that the form describes; None with the errors in the form."""
    keep_line_ends(form.executor_param)
    try:
        composed_text = sent_parameter(parameters)
        if composed_text is not None:
            form.executor_param.data = composed_text
        trigger, is_new = _trigger(job, form, log)
        return after_run(trigger, back=way_back("jobs.index"), is_new=is_new)
    except InvalidInput as exc:
        if parameters is None or not parameters.form.errors:
            form.refuse(exc)
    except Conflict as exc:
        if find_refusal(current_book.current(), job.id, job.job_group, now_ms()) is None:
            raise
        form.refuse(InvalidInput("force", exc.args[0]))
    return None


def _trigger(job: Job, form: RunForm, log: JobLog | None) -> tuple[Trigger, bool]:
    """Queue the run that the form describes; return its trigger, and False where the form was sent before."""
    return transact(
        partial(
            trigger_by_form,
            job_id=job.id,
            form_key=tasks.requested_form_key(),
            executor_param=form.executor_param.data or "",
            repeats=_run_to_continue(job, request.form.get("repeats", "")) or _id_to_refill(log),
            address_list=form.address_list.data or "",
            due_ms=requested_start(form),
            logical_ms=requested_logical(form),
            force=bool(form.force.data),
            in_chain=_in_chain(form, log),
            actor=current_actor(),
            now_ms=now_ms(),
        )
    )


def _in_chain(form: RunForm, log: JobLog | None) -> InChain:
    """Return a new chain if the form asks for one, else round and chain of the run that is run again."""
    if form.chain.data:
        return InChain(opens=True, shared_with_java=settings().shared_with_java)
    if log is None:
        return InChain()
    return InChain(chain=log.chain, round_id=log.round_id, shard=log.executor_sharding_param)


@blueprint.route("/kill", methods=["GET", "POST"])
def kill(job_id: int) -> ResponseReturnValue:
    """Kill the job's runs in progress."""
    job = _job(job_id, Right.OPERATE)
    with read_scope() as session:
        # A run from before the job was moved is in its former group.
        group_ids = current_actor().group_ids(Right.OPERATE)
        running = overview.find_running_of_job(
            session, job_id, group_ids=group_ids, now_ms=now_ms(), limit=KILLED_MAX
        )
    if request.method == "POST":
        if not kill_runs(running, actor=current_actor(), caller=executor_caller(), now_ms=now_ms()):
            raise Conflict(N_("This job has no run in progress"))
        return done("runs_killed", way_back("jobs.index"), of=_subject(job))
    consequences = [
        _(
            "The executor ends all runs of this job on its instance, including queued ones."
            " Work already done is not rolled back."
        )
    ]
    for log in running:
        address, since = log.executor_address or "–", absolute(log.trigger_time or 0)
        consequences.append(
            _("Run %(id)s on %(address)s, since %(time)s", id=log.id, address=address, time=since)
        )
    question = Question(
        _("Kill the runs in progress?"),
        _name(job),
        consequences,
        _("Kill the runs in progress"),
        kind="danger",
        glyph="x-octagon",
    )
    return confirm_page(question, back=way_back("jobs.index"))


def _switch(job_id: int, *, on: bool) -> ResponseReturnValue:
    """Switch the schedule and return to the page; js/switch.js gets the toast instead."""
    job, change = _job(job_id, Right.OPERATE), jobs.start_job if on else jobs.stop_job
    with session_scope() as session:
        change(session, job_id, actor=current_actor(), clock=now_ms)
    code, back = "started" if on else "stopped", way_back("jobs.index")
    if request.accept_mimetypes.best == "application/json":
        return jsonify(on=on, toast=toast_of(code, _subject(job), back))
    return done(code, back, of=_subject(job))


def _job(job_id: int, right: Right) -> Job:
    with read_scope() as session:
        return jobs.get_job(session, job_id, actor=current_actor(), right=right)


def _name(job: Job) -> str:
    return f"{job.id} · {job.job_desc}"


def _subject(job: Job) -> Subject:
    return Subject("job", job.id, job.job_desc)


def _run_to_continue(job: Job, text: str) -> int | None:
    """Return the id of a failed run of the job that has left a checkpoint; None if it is no such run."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        return None
    with read_scope() as session:
        log = logs.get_log(session, int(text), actor=current_actor())
        return log.id if log.job_id == job.id and log.failed and log.checkpoint is not None else None


def _id_to_refill(log: JobLog | None) -> int | None:
    """Return the id of the run that is run again, whose filled parameter the new run gets; None without one.

    It is no run with a checkpoint, which the form asks about.
    """
    if log is None or log.param_form != ParamForm.TEMPLATE:
        return None
    return None if log.failed and log.checkpoint is not None else log.id


def _run_to_repeat(job: Job) -> JobLog | None:
    """Return the run that is run again (``?log=``), None without one; raises NotFound for another job's."""
    log = run_to_repeat(job)
    if log is None and whole_number("log", 0):
        raise NotFound(logs.MISSING)
    return log


def _values_of(job: Job, log: JobLog | None) -> tuple[str, str, Millis | None]:
    """Return parameter, address and logical time of the run to repeat, else the job's parameter.

    A shard is repeated on its own instance, any other run on the one that the job's route strategy chooses.
    """
    if log is None:
        return job.executor_param or "", "", None
    with read_scope() as session:
        param = param_to_repeat(session, log)
    param = (job.executor_param or "") if param is None else param
    return param, address_to_repeat(log), logical_of(log)
