"""Rules of what a job runs after: which jobs it may name, and that no job leads back to itself."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from app.domain.access.permissions import Actor, Right
from app.domain.jobs.children import parse_child_ids
from app.domain.jobs.fields import JobDraft
from app.domain.rounds.kinds import RoundRule
from app.domain.rounds.runs_after import RUNS_AFTER, RunsAfter, parse_runs_after
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, Text
from app.errors import ForeignValue, InvalidInput
from app.models.job import Job
from app.store.rounds.edges import JobLinks

FOREIGN = N_("a job of another group")
WITHOUT_JAVA = N_(
    "Runs that a Java admin on the same database ends would start nothing (XXL_JOB_SHARED_WITH_JAVA)"
)
#: most jobs of a path that an error names, and what stands for the others
SHOWN_MAX, ELLIPSIS = 8, "…"


class LinkLookup(Protocol):
    """Lookup of jobs: what the rules ask about them."""

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id; missing jobs are left out."""

    def find_path(self, start: int, goal: int, links: JobLinks) -> Sequence[int]:
        """Return a path of jobs that follow each other from one to another; empty: there is none."""

    def names_of(self, job_ids: Collection[int]) -> Mapping[int, str]:
        """Return the names of those of the jobs that the actor may see, with their ids: ``7 Load``."""


def check_predecessors(lookup: LinkLookup, draft: JobDraft, actor: Actor, job: Job | None) -> None:
    """Raise InvalidInput for what is wrong with the predecessors of a job, with all errors.

    The actor must be allowed to see the new ones; the others stay, also those that are gone.
    """
    runs_after = parse_runs_after(draft.runs_after)
    if runs_after is None:
        return
    errors = InputErrors()
    with errors:
        if draft.readable_by_java:
            raise InvalidInput(RUNS_AFTER, WITHOUT_JAVA)
    with errors:
        if runs_after.rule is RoundRule.K_OF_N and runs_after.k > len(runs_after.jobs):
            problem = N_(
                "%(k)s is more than the %(count)s jobs that this one runs after",
                k=runs_after.k,
                count=len(runs_after.jobs),
            )
            raise InvalidInput(f"{RUNS_AFTER}.k", problem)
    former = parse_runs_after(job.runs_after) if job is not None else None
    _check_jobs(lookup, draft, runs_after, former.jobs if former is not None else (), actor, job, errors)
    errors.raise_all()


def _check_jobs(
    lookup: LinkLookup,
    draft: JobDraft,
    runs_after: RunsAfter,
    former: Collection[int],
    actor: Actor,
    job: Job | None,
    errors: InputErrors,
) -> None:
    groups, links = lookup.groups_of(runs_after.jobs), links_of(draft, job)
    for number, job_id in enumerate(runs_after.jobs):
        place = f"{RUNS_AFTER}.jobs.{number}"
        with errors:
            if job_id in runs_after.jobs[:number]:
                raise InvalidInput(place, N_("Job %(id)s is named twice", id=job_id))
            if job is not None and job_id == job.id:
                raise InvalidInput(place, N_("A job cannot run after itself (%(id)s)", id=job_id))
            if job_id in former:
                continue
            problem = N_("Job %(id)s was not found", id=job_id)
            if job_id not in groups:
                raise InvalidInput(place, problem)
            if not actor.may(groups[job_id], Right.VIEW):
                raise ForeignValue(place, problem)
            path = lookup.find_path(links.job_id, job_id, links)
            if path:
                names = path_text(lookup, [*path, links.job_id], draft, links.job_id)
                problem = N_("These jobs would wait for each other forever: %(jobs)s", jobs=names)
                raise InvalidInput(place, problem)


def links_of(draft: JobDraft, job: Job | None) -> JobLinks:
    """Return what a draft links its job with; a new one has the id 0."""
    children = list[int]()
    with suppress(InvalidInput):  # which the check of the children reports
        children = parse_child_ids(draft.child_jobid)
    runs_after = parse_runs_after(draft.runs_after)
    predecessors = runs_after.jobs if runs_after is not None else ()
    return JobLinks(job.id if job is not None else 0, children, predecessors)


def path_text(lookup: LinkLookup, path: Sequence[int], draft: JobDraft, own_id: int) -> Text:
    """Return a path such as ``7 Load → 9 Report → 7 Load``; jobs that the actor may not see have no names."""
    steps: list[int | None] = list(path)
    if len(steps) > SHOWN_MAX:
        steps[SHOWN_MAX // 2 : -SHOWN_MAX // 2] = [None]
    names = lookup.names_of({job_id for job_id in steps if job_id is not None})
    own_name = f"{own_id} {draft.job_desc.strip()}" if own_id else draft.job_desc.strip()
    names = {**names, own_id: own_name}
    labels = [ELLIPSIS if job_id is None else names.get(job_id, FOREIGN) for job_id in steps]
    return Text(" → ".join(f"%({number})s" for number in range(len(labels))), dict(_number(labels)))


def _number(labels: Sequence[str]) -> Sequence[tuple[str, object]]:
    return [(str(number), label) for number, label in enumerate(labels)]
