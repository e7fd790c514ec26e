"""Import of jobs from a file, with the rules, rights and audit of single jobs: all of them or none.

The import is planned and checked outside any writing transaction, which on SQLite would block all other
writers. The transaction only checks that everything is still as it was found, and writes in bulk.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.engine import read_scope, session_scope
from app.database.rows import bulk
from app.domain.access.permissions import Actor, Right
from app.domain.code.change_sources import IMPORT, source_text
from app.domain.enums import TriggerStatus
from app.domain.jobs.children import child_ids_text, parse_child_ids
from app.domain.jobs.tags import FIELD as TAGS
from app.domain.tasks import ResultLine, Step, TaskKind, TaskState
from app.domain.text.limits import limited_text
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.job import Job
from app.models.task import Task
from app.services.auditing import audit
from app.services.jobs import glue, versions
from app.services.jobs.replan import replan_jobs
from app.services.jobs.rules import CHILDREN_MAX, audited
from app.services.jobs.transfer.job_file import CHILDREN, Entry, read_file
from app.services.jobs.transfer.plan import Change, Finding, Found, Kind, Planned, plan_import
from app.services.tasks.task_step import TaskRefused, Turn
from app.services.tasks.tasks import TaskDraft
from app.store.base import locks
from app.store.executors import listing as group_lists
from app.store.jobs import listing as job_lists
from app.store.jobs import tags as job_tags

__all__ = ["Change", "Finding", "Kind", "import_jobs"]

#: attempts at an import whose jobs are changed by others meanwhile
ATTEMPTS = 3
CHANGED_MEANWHILE = N_("Another user is changing these jobs: try again")
RIGHTS_CHANGED = N_("Your rights have changed: import the file again")
NOTHING_IMPORTED = N_("Nothing was imported: correct the errors below, then import the file again")

#: parameters of the task: whether jobs that a Java admin cannot read are refused; the name of the file,
#: empty for pasted text
JAVA, FILE_NAME = "readable_by_java", "file_name"
#: longest name of a file that is kept
FILE_NAME_MAX = 100

#: work of a writing transaction; None: others have changed what it relies on
Writing = Callable[[Session], "list[Finding] | None"]


def import_jobs(
    entries: Sequence[Entry],
    *,
    actor: Actor,
    clock: Clock,
    dry: bool,
    write: Callable[[Writing], "list[Finding] | None"] | None = None,
) -> list[Finding]:
    """Store the jobs in one transaction, opened by ``write``; store nothing if ``dry``, or with any error.

    Returns a finding for each job. Raises InvalidInput where others keep changing these jobs meanwhile.
    """
    for _attempt in range(ATTEMPTS):
        with read_scope() as session:
            found = _find(session, entries, actor)
        plan = plan_import(found, entries, actor=actor, now_ms=clock())
        if dry or any(planned.finding.kind is Kind.ERROR for planned in plan):
            return _in_order(planned.finding for planned in plan)

        def store(session: Session, found: Found = found, plan: list[Planned] = plan) -> list[Finding] | None:
            return _store(session, entries, found, plan, actor=actor, clock=clock)

        stored = (write or _in_transaction)(store)
        if stored is not None:
            return stored
    raise InvalidInput("file", CHANGED_MEANWHILE)


def draft_task(
    text: str, total: int, *, readable_by_java: bool, form_key: str, file_name: str = ""
) -> TaskDraft:
    """Return the task that imports the text of a file; see ``read_file`` for ``readable_by_java``."""
    parameters = {"text": text, JAVA: readable_by_java, FILE_NAME: file_name}
    return TaskDraft(TaskKind.IMPORT, parameters, total, form_key, entered(text))


def entered(text: str) -> dict[str, object]:
    """Return what the user entered of an import."""
    return {"text": text}


def clean_name(name: str) -> str:
    """Return the name of a file without folders and without characters that cannot be shown."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(filter(str.isprintable, last)).strip()[:FILE_NAME_MAX]


def import_task(turn: Turn) -> None:
    """Import the whole file as the only piece of its task; the text is not kept afterwards."""
    stored_file = json.loads(turn.task.parameters)
    entries, actor = read_file(stored_file["text"], readable_by_java=stored_file[JAVA]), turn.actor()
    stored: list[Finding] | None = None

    def write(work: Writing) -> list[Finding] | None:
        def step(session: Session, _task: Task, present: Actor) -> Step:
            nonlocal stored
            if present != actor:
                raise TaskRefused(RIGHTS_CHANGED)
            stored = work(session)
            return Step(is_progress=False) if stored is None else _finish(stored)

        turn.commit(step)
        return stored

    with versions.changes_from(source_text(IMPORT, stored_file.get(FILE_NAME, ""))):
        findings = import_jobs(entries, actor=actor, clock=turn.clock, dry=False, write=write)
    if turn.task.state == TaskState.RUNNING:
        turn.commit(lambda _session, _task, _actor: _finish(findings, error=NOTHING_IMPORTED))


def finding_detail(finding: Finding) -> dict[str, object]:
    """Return the detail of a result line: all of a finding but its name."""
    return {
        "app_name": finding.app_name,
        "changes": [[change.field, change.old, change.new] for change in finding.changes],
        "field": finding.field,
        "problem": finding.problem,
        "options": list(finding.options),
        "more": [[name, problem] for name, problem in finding.more],
    }


def result_lines(findings: Sequence[Finding]) -> list[ResultLine]:
    """Return the findings as result lines."""
    return [
        ResultLine(each.number, each.kind.value, each.job_id, each.name, finding_detail(each))
        for each in findings
    ]


def _finish(findings: Sequence[Finding], *, error: str = "") -> Step:
    advance = 0 if error else len(findings)
    return Step(advance=advance, lines=result_lines(findings), finished=True, error=error)


def _in_transaction(work: Writing) -> list[Finding] | None:
    with session_scope() as session:
        return work(session)


def _store(
    session: Session,
    entries: Sequence[Entry],
    found: Found,
    plan: Sequence[Planned],
    *,
    actor: Actor,
    clock: Clock,
) -> list[Finding] | None:
    """Write the plan unless the data it is based on has changed; None otherwise."""
    locks.take_import_lock(session)  # a missing job has no row to lock: two imports could both add it
    if found.has_children or any(entry.children for entry in entries):
        locks.take_schedule_lock(session)  # like every writer of children: two could close a circle together
    if _find(session, entries, actor, lock=True) != found:
        return None
    return _in_order(write_plan(session, plan, actor=actor, clock=clock))


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.number)


def _find(session: Session, entries: Sequence[Entry], actor: Actor, *, lock: bool = False) -> Found:
    """Find what the file names and the actor may see; ``lock`` keeps it unchanged until the commit."""
    named = {entry.app_name for entry in entries}
    keys = {entry.key for entry in entries}
    groups = {
        group.id: group.app_name
        for group in group_lists.find_visible(session, actor.group_ids(Right.VIEW))
        if group.app_name in named
    }
    rows = job_lists.find_named(session, {key[1] for key in keys}, group_ids=groups)
    ids = [
        job_id
        for job_id, group_id, description, handler in rows
        if (groups[group_id], description, handler) in keys
    ]
    jobs = job_lists.read_definitions(session, ids, lock=lock)
    if lock:
        held = group_lists.hold_groups(session, groups)
        groups = {group_id: app_name for group_id, app_name in groups.items() if group_id in held}
    return Found(groups, jobs, job_lists.find_descendants(session, ids), job_tags.find_tags(session, ids))


def write_plan(session: Session, plan: Sequence[Planned], *, actor: Actor, clock: Clock) -> list[Finding]:
    """Store the plan by a few statements; return the findings with the new ids."""
    now_ms = clock()
    former = versions.read_present(
        session, [each.job_id for each in plan if each.job_id > 0 and each.columns]
    )
    ids = _add(session, plan, now_ms)
    changed = [planned for planned in plan if planned.columns and planned.job_id > 0]
    replanned = {planned.job_id: planned.replan for planned in changed if planned.replan is not None}
    if replanned:
        replan_jobs(session, replanned, clock=clock)
    bulk.update_many(
        session,
        Job,
        [{"id": each.job_id, **_with_ids(each.columns, ids), "update_time": now_ms} for each in changed],
    )
    job_tags.replace_tags(
        session, {ids.get(each.job_id, each.job_id): each.tags[1] for each in plan if each.tags is not None}
    )
    versions.keep(session, {**former, **dict.fromkeys(ids.values())}, actor=actor, now_ms=now_ms)
    entries = [_audit_entry(planned, ids) for planned in plan if planned.columns]
    audit.record_many(session, entries, actor=actor, now_ms=now_ms)
    sources = [planned.version for planned in plan if planned.version is not None]
    if sources:
        glue.save_versions(session, sources, actor=actor, now_ms=now_ms)
    return [_found(planned, ids) for planned in plan]


def _add(session: Session, plan: Sequence[Planned], now_ms: Millis) -> dict[int, int]:
    """Insert the new jobs, stopped, then their children among each other; return planned id -> id."""
    new = [planned for planned in plan if planned.job_id < 0]
    stamps = {"add_time": now_ms, "update_time": now_ms, "glue_updatetime": now_ms}
    clocks = {
        "trigger_status": int(TriggerStatus.STOPPED),
        "trigger_last_time": 0,
        "trigger_next_time": 0,
        "last_fire_ms": 0,
    }
    given = bulk.insert_with_ids(session, Job, [{**planned.columns, **stamps, **clocks} for planned in new])
    ids = {planned.job_id: job_id for planned, job_id in zip(new, given, strict=True)}
    parents = [planned for planned in new if "-" in str(planned.columns["child_jobid"])]
    texts = [(ids[planned.job_id], _with_ids(planned.columns, ids)["child_jobid"]) for planned in parents]
    bulk.update_many(session, Job, [{"id": job_id, "child_jobid": text} for job_id, text in texts])
    return ids


def _with_ids(columns: Mapping[str, object], ids: Mapping[int, int]) -> dict[str, object]:
    """Return columns with the ids of new children."""
    return {**columns, "child_jobid": _named(str(columns["child_jobid"]), ids)}


def _named(text: str, ids: Mapping[int, int]) -> str:
    if "-" not in text:
        return text
    return limited_text(
        CHILDREN, child_ids_text([ids.get(child, child) for child in parse_child_ids(text)]), CHILDREN_MAX
    )


def _audit_entry(planned: Planned, ids: Mapping[int, int]) -> audit.Entry:
    columns = _with_ids(planned.columns, ids)
    tags = {TAGS: planned.tags} if planned.tags is not None else {}
    if planned.job_id < 0:
        return audit.Entry(
            "job.add", ("job", ids[planned.job_id]), {**audited(columns), **tags, "started": False}
        )
    return audit.Entry(
        "job.update", ("job", planned.job_id), audited(audit.difference(planned.before, columns) | tags)
    )


def _found(planned: Planned, ids: Mapping[int, int]) -> Finding:
    """Return the finding of a stored job, its new children by their ids."""
    finding = replace(planned.finding, job_id=ids.get(planned.job_id, planned.finding.job_id))
    if not planned.columns:
        return finding
    text = _named(str(planned.columns["child_jobid"]), ids)
    return replace(
        finding,
        changes=tuple(
            replace(each, new=text) if each.field == CHILDREN else each for each in finding.changes
        ),
    )
