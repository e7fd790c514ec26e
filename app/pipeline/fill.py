"""Filling at the claim: parameters with placeholders get their values, all but those of secrets.

The language is in ``app.domain.parameters``; docs/reference/pipeline.md, section 3. One
statement for each kind of what the templates of a claim name, however many runs there are.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.domain.enums import ParamForm
from app.domain.parameters.errors import InvalidTemplate, NotFilled
from app.domain.parameters.marked_text import fill_secrets, secrets_of
from app.domain.parameters.placeholders import Names
from app.domain.parameters.template import Template, parse
from app.domain.parameters.values import GivenRun, Values
from app.domain.runs.logical_times import logical_of
from app.domain.runs.sharding import WHOLE
from app.domain.runs.trace_templates import TEMPLATE_INVALID, fill
from app.domain.text.texts import Text
from app.models.log import JobLog
from app.pipeline.checkpoints import repeated_id
from app.pipeline.claimed_run import filled_columns
from app.pipeline.given_runs import given_run
from app.pipeline.rounds.predecessor_values import NONE_GIVEN, find_given
from app.pipeline.route import FilledParameter, RoutedFire, is_as_sent
from app.store.fires import earlier_runs
from app.store.fires import queue as fires
from app.store.fires.earlier_runs import GIVEN_TO
from app.store.fires.logs import UnfinishedRun
from app.store.jobs import scheduling as jobs
from app.store.variables import values as variables

#: placeholder of the name of a job, which is read only for it
_JOB_NAME = "${job.name"
#: stands for the id of a run that has none yet: where it is short enough, with its secrets, so is every id
_LONGEST_ID = 2**63 - 1


class _TemplateRun(NamedTuple):
    """A run whose template is filled in anew."""

    routed_fire: RoutedFire
    template: Template
    names: Names


@dataclass(slots=True)
class Filling:
    """Runs of a claim, in their order, with their filled parameters."""

    routed_fires: list[RoutedFire]
    #: fire id -> why its parameter could not be filled in
    reasons: dict[int, Text] = field(default_factory=dict)
    #: fire id -> template that names the id of its run, which is not known yet, with the other values
    template_by_fire: dict[int, tuple[Template, Values]] = field(default_factory=dict)

    def with_run_ids(self, log_id_by_fire: Mapping[int, int]) -> dict[int, RoutedFire]:
        """Return the runs, by fire id, that name their own id, filled in with it."""
        fires_with_id = {}
        for routed_fire in self.routed_fires:
            fire_id = routed_fire.fire.id
            if (
                fire_id in self.reasons
                or fire_id not in self.template_by_fire
                or routed_fire.parameter is None
            ):
                continue
            template, values = self.template_by_fire[fire_id]
            param_text = template.fill(replace(values, run_id=log_id_by_fire[fire_id])).marked_text
            fires_with_id[fire_id] = routed_fire._replace(
                parameter=routed_fire.parameter._replace(marked_text=param_text)
            )
        return fires_with_id


def fill_parameters(
    session: Session,
    routed_fires: Sequence[RoutedFire],
    run_by_id: Mapping[int, UnfinishedRun],
    *,
    zone: str,
) -> Filling:
    """Fill in the parameters of the runs whose job has that switched on; the others stay as they are.

    ``run_by_id``: log rows of earlier claims, by id; ``zone``: that of jobs without one.
    """
    template_fires = [routed_fire for routed_fire in routed_fires if _is_template(routed_fire, run_by_id)]
    filling = Filling(list(routed_fires))
    if not template_fires:
        return filling
    former = _find_former(session, template_fires, run_by_id)
    marked_by_fire, items = dict(former), list[_TemplateRun]()
    for routed_fire in template_fires:
        if routed_fire.fire.id not in former:
            try:
                template = parse(routed_fire.param)
            except InvalidTemplate as exc:  # of a job that another program has changed
                filling.reasons[routed_fire.fire.id] = fill(TEMPLATE_INVALID, reason=exc.message)
            else:
                items.append(_TemplateRun(routed_fire, template, template.names()))
    values_by_fire = _values(session, items, zone)
    for routed_fire, template, names in items:
        fire_id, values = routed_fire.fire.id, values_by_fire[routed_fire.fire.id]
        try:
            marked_by_fire[fire_id] = template.fill(values).marked_text
        except NotFilled as exc:
            filling.reasons[fire_id] = exc.message
        if names.uses_run_id and routed_fire.fire.log_id is None:
            filling.template_by_fire[fire_id] = template, values
    filled_by_fire = _with_secrets(session, template_fires, marked_by_fire, former, filling.reasons)
    filling.routed_fires = [
        routed_fire._replace(parameter=filled_by_fire.get(routed_fire.fire.id))
        for routed_fire in routed_fires
    ]
    return filling


def is_filled(routed_fire: RoutedFire) -> bool:
    """Whether the parameter of a run is a template."""
    return routed_fire.parameter is not None


def write_run_ids(session: Session, filling: Filling, log_id_by_fire: Mapping[int, int]) -> list[RoutedFire]:
    """Fill in, and write, the ids of new runs where their templates name them; return all runs."""
    fires_with_id = filling.with_run_ids(log_id_by_fire)
    rows = [
        {"id": log_id_by_fire[fire_id], **filled_columns(routed_fire)}
        for fire_id, routed_fire in fires_with_id.items()
    ]
    bulk.update_many(session, JobLog, rows)
    return [fires_with_id.get(routed_fire.fire.id, routed_fire) for routed_fire in filling.routed_fires]


def _is_template(routed_fire: RoutedFire, run_by_id: Mapping[int, UnfinishedRun]) -> bool:
    """Whether the parameter is filled in: a run that may have been sent stays what it was."""
    fire, job = routed_fire.fire, routed_fire.job
    if fire.log_id is not None and is_as_sent(fire, job, run_by_id[fire.log_id]):
        return run_by_id[fire.log_id].param_form == ParamForm.TEMPLATE
    is_own = fire.executor_param is None or fire.param_form == ParamForm.TEMPLATE
    return bool(job.fill_parameter) and is_own


def _find_former(
    session: Session, template_fires: Sequence[RoutedFire], run_by_id: Mapping[int, UnfinishedRun]
) -> dict[int, str]:
    """Return fire id -> what was sent with the same template before, by the run itself or one it repeats.

    A run that is run again for another logical time is filled in anew.
    """
    log_ids: dict[int, int] = {}
    for routed_fire in template_fires:
        fire, job = routed_fire.fire, routed_fire.job
        is_own = fire.log_id is not None and is_as_sent(fire, job, run_by_id[fire.log_id])
        if (log_id := fire.log_id if is_own else repeated_id(routed_fire)) is not None:
            log_ids[fire.id] = log_id
    run_by_log = earlier_runs.find_filled(session, set(log_ids.values()))
    return {
        routed_fire.fire.id: run.marked_text
        for routed_fire in template_fires
        if (run := run_by_log.get(log_ids.get(routed_fire.fire.id, 0))) is not None
        and run.marked_text is not None
        and (run.log_id == routed_fire.fire.log_id or _repeats(routed_fire, run))
    }


def _repeats(routed_fire: RoutedFire, run: earlier_runs.FilledRun) -> bool:
    return run.template == routed_fire.param and logical_of(run) == routed_fire.fire.logical_time


def _values(session: Session, items: Sequence[_TemplateRun], zone: str) -> dict[int, Values]:
    """Return fire id -> the values for its placeholders."""
    groups = {item.routed_fire.job.job_group for item in items if item.names.variables}
    texts = variables.find_values(session, _union(item.names.variables for item in items), groups)
    job_ids = {item.routed_fire.job.id for item in items if _JOB_NAME in item.routed_fire.param}
    job_names = jobs.find_names(session, job_ids) if job_ids else {}
    parents = _parents(session, [item.routed_fire for item in items if item.names.uses_parent])
    rounds = find_given(session, [item.routed_fire for item in items if _uses_round(item.names)])
    values_by_fire = {}
    for routed_fire, _template, names in items:
        fire, job, shard = routed_fire.fire, routed_fire.job, routed_fire.shard or WHOLE
        named_job = job_names.get(job.id)
        values_by_fire[fire.id] = Values(
            logical_ms=fire.logical_time,
            time_zone=job.time_zone or zone,
            job_id=job.id,
            job_name=named_job.job_desc if named_job is not None else "",
            run_id=fire.log_id or _LONGEST_ID,
            shard_index=shard.index,
            shard_total=shard.total,
            parent=parents.get(fire.id),
            **rounds.get(fire.id, NONE_GIVEN)._asdict(),
            variables={
                name: texts[job.job_group, name] for name in names.variables if (job.job_group, name) in texts
            },
        )
    return values_by_fire


def _uses_round(names: Names) -> bool:
    return bool(names.parents) or names.uses_shards


def _parents(session: Session, routed_fires: Sequence[RoutedFire]) -> dict[int, GivenRun]:
    """Return fire id -> the run that it follows, also through retries and runs that were repeated."""
    parent_ids: dict[int, int] = {}
    chains: dict[int, int] = {}
    for routed_fire in routed_fires:
        fire = routed_fire.fire
        source = fires.source_of(fire.fire_key)
        if fire.trigger_type in GIVEN_TO and source is not None:
            parent_ids[fire.id] = source
        elif (log_id := repeated_id(routed_fire)) is not None:
            chains[fire.id] = log_id
    parents = earlier_runs.find_parents(session, set(chains.values()))
    parent_ids |= {fire_id: parents[log_id] for fire_id, log_id in chains.items() if log_id in parents}
    runs = earlier_runs.find_given(session, set(parent_ids.values()))
    return {fire_id: given_run(runs[log_id]) for fire_id, log_id in parent_ids.items() if log_id in runs}


def _with_secrets(
    session: Session,
    template_fires: Sequence[RoutedFire],
    marked_by_fire: Mapping[int, str],
    kept_ids: Collection[int],
    reasons: dict[int, Text],
) -> dict[int, FilledParameter]:
    """Return fire id -> filled parameter with its sealed secrets; those that cannot be sent get a reason.

    A secret counts only in the parameter of the job itself, which takes the right to edit it.
    ``kept_ids``: fires with what was sent before.
    """
    secrets = {fire_id: secrets_of(param_text) for fire_id, param_text in marked_by_fire.items()}
    groups = {routed_fire.job.job_group for routed_fire in template_fires if secrets.get(routed_fire.fire.id)}
    sealed_texts = variables.find_sealed(session, _union(secrets.values()), groups)
    plaintexts = {text: variables.opened_or_none(text) for text in sealed_texts.values()}
    filled_by_fire = {}
    for routed_fire in template_fires:
        fire_id, group_id = routed_fire.fire.id, routed_fire.job.job_group
        param_text, ciphertexts = None if fire_id in reasons else marked_by_fire[fire_id], dict[str, str]()
        is_own = routed_fire.fire.executor_param in (None, routed_fire.job.executor_param)
        if param_text is not None and secrets[fire_id]:
            if is_own or fire_id in kept_ids:
                keys = {name: (group_id, name) for name in secrets[fire_id]}
                ciphertexts = {name: sealed_texts[key] for name, key in keys.items() if key in sealed_texts}
            try:
                fill_secrets(param_text, {name: plaintexts[text] for name, text in ciphertexts.items()})
            except NotFilled as exc:
                reasons[fire_id], param_text, ciphertexts = exc.message, None, {}
        filled_by_fire[fire_id] = FilledParameter(param_text, ciphertexts)
    return filled_by_fire


def _union(sets: Iterable[Collection[str]]) -> set[str]:
    return {name for names in sets for name in names}
