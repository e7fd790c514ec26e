"""Form of a backfill: its choices, the list of what it would run, its start."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from zoneinfo import ZoneInfo

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.console.backfills.forms import UNSUCCESSFUL, BackfillForm
from app.console.backfills.plan_rows import PlannedDay, planned_days
from app.console.backfills.presets import PRESETS, preset_range, presets_of
from app.console.backfills.targets import Target, Targets, requested_targets, without_succeeded
from app.console.ui.lists.listing import address_with
from app.console.ui.notices import done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.errors import Conflict, InvalidInput
from app.services.backfills.backfills import (
    WITHOUT_JAVA,
    BackfillDraft,
    BackfillPlan,
    plan_backfill,
    start_backfill,
)

blueprint = Blueprint("backfill_forms", __name__, url_prefix="/backfills/new")
POLICY = {
    "new": Access.OPERATE,
    "preview": Access.OPERATE,
}
#: range of a new form
FIRST_PRESET = "yesterday"


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What would be run of one job."""

    target: Target
    draft: BackfillDraft
    plan: BackfillPlan

    @property
    def summary(self) -> str:
        """The numbers in a sentence."""
        return translate(self.plan.sentence)

    @property
    def days(self) -> list[PlannedDay]:
        """The list, by day."""
        return planned_days(self.plan.instants, self.plan.which, self.target.zone)


@dataclass(frozen=True, slots=True)
class RunList:
    """What the form would run; ``error``: why nothing can be said."""

    of_jobs: Sequence[JobPlan] = ()
    error: str = ""
    #: named instants that are left out, as they have succeeded
    succeeded_count: int = 0

    @property
    def to_run(self) -> int:
        """How many instants are run."""
        return sum(len(item.plan.to_run) for item in self.of_jobs)

    @property
    def overlapping(self) -> list[int]:
        """Active backfills that run some of them."""
        return sorted({backfill_id for item in self.of_jobs for backfill_id in item.plan.overlapping})

    @property
    def fingerprint(self) -> str:
        """Names the instants and their order, so that nothing is run but what was shown."""
        text = ";".join(f"{item.target.job.id}:{[*item.plan.to_run]}" for item in self.of_jobs)
        return sha256(text.encode()).hexdigest()[:32]


@blueprint.route("", methods=["GET", "POST"])
def new() -> ResponseReturnValue:
    """Show the form with its list, and start what was listed."""
    with read_scope() as session:
        targets = requested_targets(session)
    form = _form(targets)
    if settings().shared_with_java:
        return _page(form, targets, RunList(error=translate(WITHOUT_JAVA)))
    run_list = _list_runs(form, targets)
    if request.method == "GET":
        form.forget_errors()  # The list has them.
        return _page(form, targets, run_list)
    if (answer := _start(form, run_list)) is not None:
        return answer
    return _page(form, targets, run_list), 400 if form.wrong_fields or form.form_errors else 200


@blueprint.post("/list")
def preview() -> ResponseReturnValue:
    """Return the list while the form is edited."""
    with read_scope() as session:
        targets = requested_targets(session)
    form = _form(targets)
    return render_template("backfills/_plan.html", listed=_list_runs(form, targets), cancel=_cancel(targets))


def _form(targets: Targets) -> BackfillForm:
    zone = targets.of_jobs[0].zone
    preset = request.args.get("preset", "")
    from_text, to_text = preset_range(preset if preset in PRESETS else FIRST_PRESET, zone, now_ms=now_ms())
    names = ("order", "max_running", "children", "on_failure", "which")
    options = {name: request.args[name] for name in names if name in request.args}
    if not targets.is_named and not preset:
        from_text, to_text = request.args.get("from", from_text), request.args.get("to", to_text)
    form = BackfillForm(request.form or None, data=options | {"from_": from_text, "to": to_text})
    form.offer(is_named=targets.is_named)
    return form


def _list_runs(form: BackfillForm, targets: Targets) -> RunList:
    """Return what the form would run; what is wrong with it is shown there, too."""
    try:
        with read_scope() as session:
            candidates = [
                _plan_job(session, form, target)
                for target in targets.of_jobs
                if target.times or not targets.is_named
            ]
    except InvalidInput as exc:
        form.refuse(exc)
        errors = [f"{field.label.text}{_(': ')}{' '.join(field.errors)}" for field in form.wrong_fields]
        return RunList(error=" ".join([*form.form_errors, *errors]))
    plans = [item for item in candidates if item is not None]
    count = sum(len(target.times) for target in targets.of_jobs)
    return RunList(plans, succeeded_count=count - sum(len(item.target.times) for item in plans))


def _plan_job(session: Session, form: BackfillForm, target: Target) -> JobPlan | None:
    if target.times and (form.which.data or UNSUCCESSFUL) != "all":
        target = without_succeeded(session, target)
        if not target.times:
            return None
    draft = form.draft(target.zone, target.times)
    actor, zone = current_actor(), settings().time_zone
    plan = plan_backfill(session, target.job.id, draft, actor=actor, zone=zone, now_ms=now_ms())
    return JobPlan(target, draft, plan)


def _start(form: BackfillForm, run_list: RunList) -> ResponseReturnValue | None:
    """Start what was listed; None with the reason in the form or in the list, or to show the list first."""
    fingerprint = request.form.get("listed", "")
    if run_list.error or not fingerprint or not run_list.to_run:
        return None
    if fingerprint != run_list.fingerprint:
        form.form_errors.append(_("The list has changed since it was shown. Look at it again."))
        return None
    try:
        ids = transact(partial(_start_all, plans=run_list.of_jobs))
    except InvalidInput as exc:
        form.refuse(exc)
        return None
    except Conflict as exc:
        form.refuse(InvalidInput("", exc.args[0]))
        return None
    if len(ids) == 1:
        return redirect(url_for("backfills.show", backfill_id=ids[0]), 303)
    return done("backfills_started", url_for("backfills.index"))


def _start_all(session: Session, plans: Sequence[JobPlan]) -> list[int]:
    return [
        start_backfill(
            session,
            item.target.job.id,
            item.draft,
            actor=current_actor(),
            zone=settings().time_zone,
            shared_with_java=settings().shared_with_java,
            clock=now_ms,
        )
        for item in plans
        if item.plan.to_run
    ]


def _cancel(targets: Targets) -> str:
    if targets.is_named and len(targets.of_jobs) > 1:
        return way_back("logs.index")
    return way_back("jobs.show", job_id=targets.of_jobs[0].job.id)


def _page(form: BackfillForm, targets: Targets, run_list: RunList) -> str:
    zone: ZoneInfo = targets.of_jobs[0].zone
    times: list[Millis] = sorted(at_ms for target in targets.of_jobs for at_ms in target.times)
    return render_template(
        "backfills/new.html",
        form=form,
        targets=targets,
        zone=zone,
        times=times,
        presets=presets_of(zone, now_ms=now_ms()),
        preset=request.args.get("preset", FIRST_PRESET if "from" not in request.args else ""),
        listed=run_list,
        is_refused=settings().shared_with_java,
        action=address_with(),
        list_address=url_for("backfill_forms.preview") + "?" + request.query_string.decode("ascii", "ignore"),
        cancel=_cancel(targets),
    )
