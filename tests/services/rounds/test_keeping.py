"""What a job runs after, when it is saved or deleted: what is refused, and what becomes of open rounds."""

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.errors import ForeignValue, InvalidInput
from app.models.job import Job
from app.models.round import After, Arrival, Round
from app.services.jobs import jobs
from tests.support.factories import T0, all_rows, make_group, only_row, save
from tests.support.jobs import LATER, add, draft, update
from tests.support.plan import every_database
from tests.support.truth_table import truth_table

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")


def after(*job_ids: int, **values: Any) -> str:
    return json.dumps({"jobs": job_ids, **values})


def edges() -> list[tuple[int, int]]:
    with read_scope() as session:
        return sorted((row.job_id, row.predecessor_id) for row in session.scalars(select(After)))


def followed() -> list[int]:
    return [job.id for job in all_rows(Job) if job.has_followers]


def remove(job_id: int) -> None:
    with session_scope() as session:
        jobs.remove_job(session, job_id, actor=ADMIN, now_ms=LATER)


def make_round(job_id: int, key: str = "t:1", **values: Any) -> Round:
    made = {"logical_ms": T0, "opened_ms": T0, "deadline_ms": T0 + 86_400_000, "due_ms": T0 + 86_400_000}
    return save(Round(job_id=job_id, round_key=key, **{**made, **values}))


def errors_of(refused: pytest.ExceptionInfo[InvalidInput]) -> list[tuple[str, str]]:
    return [(error.field, str(error)) for error in refused.value.errors]


@every_database
def test_saves_keep_the_edges_and_note_who_has_followers() -> None:
    group_id = make_group().id
    first, second, third = (add(group_id) for _ in range(3))
    last = add(group_id, runs_after=after(second, first))
    assert (edges(), followed()) == ([(last, first), (last, second)], [first, second])
    update(last, group_id, runs_after=after(second, third))
    assert (edges(), followed()) == ([(last, second), (last, third)], [second, third])
    update(third, group_id, runs_after=after(first))
    update(last, group_id, runs_after="null")
    assert (edges(), followed()) == ([(third, first)], [first])
    assert only_row(Job, id=last).runs_after is None
    remove(third)
    assert (edges(), followed()) == ([], [])


def test_of_the_same_list_nothing_is_written() -> None:
    group_id = make_group().id
    first = add(group_id)
    last = add(group_id, runs_after=after(first))
    opened = make_round(last)
    update(last, group_id, runs_after=after(first), job_desc="renamed")
    assert only_row(Round, id=opened.id).epoch == 0


@truth_table(
    "name, changes, ends",
    [
        ("another list", {"jobs": [1, 2]}, True),
        ("another order", {"jobs": [2, 1, 0]}, False),
        ("another kind of round", {"round": "day"}, True),
        ("other shards", {"shards": "any"}, True),
        ("another rule", {"rule": "any_succeeded"}, False),
        ("another deadline", {"deadline_s": 60}, False),
        ("something else at the deadline", {"at_deadline": "run"}, False),
    ],
)
def test_open_rounds_end_or_are_evaluated_anew(name: str, changes: dict[str, Any], ends: bool) -> None:
    group_id = make_group().id
    predecessors = [add(group_id) for _ in range(3)]
    last = add(group_id, runs_after=after(*predecessors))
    opened, started = make_round(last), make_round(last, "t:2", state="started")
    numbers: Sequence[int] = changes.get("jobs", [0, 1, 2])
    changes = {name: value for name, value in changes.items() if name != "jobs"}
    update(last, group_id, runs_after=after(*(predecessors[number] for number in numbers), **changes))
    row = only_row(Round, id=opened.id)
    assert (row.epoch, row.due_ms) == (1, LATER), name
    if ends:
        assert (row.state, row.reason, row.decided_ms) == ("not_run", "edited", LATER)
    else:
        assert (row.state, row.deadline_ms) == ("open", T0 + changes.get("deadline_s", 86_400) * 1_000)
    assert only_row(Round, id=started.id).epoch == 0


def test_rounds_of_a_job_that_runs_after_nothing_any_more_end() -> None:
    group_id = make_group().id
    first = add(group_id)
    last = add(group_id, runs_after=after(first))
    opened = make_round(last)
    update(last, group_id)
    assert only_row(Round, id=opened.id).reason == "edited"


def test_the_round_of_a_schedule_waits_from_its_instant_on() -> None:
    group_id = make_group().id
    first = add(group_id)
    schedule = {"schedule_type": "CRON", "schedule_conf": "0 0 3 * * ?"}
    last = add(group_id, runs_after=after(first), **schedule)
    taken, untaken = make_round(last, taken_ms=T0 + 5_000), make_round(last, "t:2")
    update(last, group_id, runs_after=after(first, deadline_s=60), **schedule)
    assert only_row(Round, id=taken.id).deadline_ms == T0 + 65_000
    assert only_row(Round, id=untaken.id).deadline_ms == T0 + 30 * 86_400_000


@every_database
def test_a_deleted_job_takes_its_rounds_along_and_wakes_those_of_its_followers() -> None:
    group_id = make_group().id
    first = add(group_id)
    second = add(group_id, runs_after=after(first))
    third = add(group_id, runs_after=after(second))
    own, other = make_round(second), make_round(third)
    for opened in (own, other):
        save(Arrival(round_id=opened.id, predecessor_id=first, outcome="failed", at_ms=T0))
    remove(second)
    assert [row.id for row in all_rows(Round)] == [other.id]
    assert [row.round_id for row in all_rows(Arrival)] == [other.id]
    assert only_row(Round, id=other.id).due_ms == LATER
    assert edges() == [(third, second)], "the follower still names it"
    assert followed() == []
    update(third, group_id, runs_after=after(second), job_desc="can still be edited")


def test_what_is_wrong_is_refused_with_all_errors() -> None:
    group_id = make_group().id
    first, second = add(group_id), add(group_id)
    with pytest.raises(InvalidInput) as refused:
        add(group_id, runs_after=after(first, first, 999, rule="k_of_n", k=4), readable_by_java=True)
    assert errors_of(refused) == [
        (
            "runs_after",
            "Runs that a Java admin on the same database ends would start nothing (XXL_JOB_SHARED_WITH_JAVA)",
        ),
        ("runs_after.k", "4 is more than the 3 jobs that this one runs after"),
        ("runs_after.jobs.1", f"Job {first} is named twice"),
        ("runs_after.jobs.2", "Job 999 was not found"),
    ]
    with pytest.raises(InvalidInput) as refused:
        update(second, group_id, runs_after=after(second))
    assert errors_of(refused) == [("runs_after.jobs.0", f"A job cannot run after itself ({second})")]
    with pytest.raises(InvalidInput) as refused:
        add(group_id, runs_after=after())
    assert [field for field, _ in errors_of(refused)] == ["runs_after.jobs"]
    assert edges() == []


def test_a_predecessor_that_the_actor_cannot_see_stays_but_is_not_added() -> None:
    own, other = make_group().id, make_group(app_name="other").id
    hidden, hidden_too = add(other), add(other)
    job_id = add(own, runs_after=after(hidden))
    actor = Actor(user_id=7, username="x", is_admin=False, rights={own: ALL_RIGHTS})
    update(job_id, own, actor=actor, runs_after=after(hidden, rule="any_succeeded"))
    with pytest.raises(ForeignValue, match="was not found"):
        update(job_id, own, actor=actor, runs_after=after(hidden, hidden_too))
    viewer = Actor(7, "x", is_admin=False, rights={own: ALL_RIGHTS, other: frozenset({Right.VIEW})})
    update(job_id, own, actor=viewer, runs_after=after(hidden, hidden_too))
    assert edges() == [(job_id, hidden), (job_id, hidden_too)]


def test_a_job_that_would_wait_for_itself_is_refused_with_the_path() -> None:
    own, other = make_group().id, make_group(app_name="other").id
    load = add(own, job_desc="Load")
    hidden = add(other, runs_after=after(load))
    report = add(own, job_desc="Report", runs_after=after(hidden))
    viewer = Actor(7, "x", is_admin=False, rights={own: ALL_RIGHTS})
    forever = "These jobs would wait for each other forever"
    path = f"{load} Load → a job of another group → {report} Report → {load} Load"
    with pytest.raises(InvalidInput) as refused:
        update(load, own, actor=viewer, job_desc="Load", runs_after=after(report))
    assert errors_of(refused) == [("runs_after.jobs.0", f"{forever}: {path}")]
    with pytest.raises(InvalidInput) as refused:
        update(report, own, actor=viewer, job_desc="Report", runs_after=after(hidden), child_jobid=str(load))
    leads = f"{report} Report → {load} Load → a job of another group → {report} Report"
    problem = f"Child job {load} leads back to this job: {leads}"
    assert errors_of(refused) == [("childJobId", problem)]


def test_children_and_predecessors_of_a_new_job_may_not_lead_to_each_other() -> None:
    group_id = make_group().id
    last = add(group_id, job_desc="Last")
    first = add(group_id, job_desc="First", child_jobid=str(last))
    with pytest.raises(InvalidInput) as refused:
        add(group_id, job_desc="New", child_jobid=str(first), runs_after=after(last))
    path = f"New → {first} First → {last} Last → New"
    assert errors_of(refused) == [
        ("childJobId", f"Child job {first} leads back to this job: {path}"),
        ("runs_after.jobs.0", f"These jobs would wait for each other forever: {path}"),
    ]


def test_a_save_that_ends_a_cycle_and_one_beside_an_adopted_cycle_are_allowed() -> None:
    group_id = make_group().id
    first = add(group_id)
    second = add(group_id, runs_after=after(first))
    update(second, group_id, child_jobid=str(first))
    assert edges() == []
    with session_scope() as session:  # as a database of the original may contain it
        session.get_one(Job, first).child_jobid = str(second)
    third = add(group_id)
    update(first, group_id, child_jobid=str(second), runs_after=after(third))
    assert edges() == [(first, third)]


def test_a_long_path_is_cut_in_its_middle() -> None:
    group_id = make_group().id
    ids = [add(group_id, job_desc="0")]
    for number in range(1, 12):
        ids.append(add(group_id, job_desc=str(number), runs_after=after(ids[-1])))
    with pytest.raises(InvalidInput, match=f"{ids[3]} 3 → … → {ids[9]} 9 → ") as refused:
        update(ids[0], group_id, job_desc="0", runs_after=after(ids[-1]))
    assert str(refused.value).count("→") == 8


@every_database
def test_concurrent_saves_close_no_cycle() -> None:
    group_id = make_group().id
    first, second = add(group_id), add(group_id)
    refused = list[str]()

    def save_second() -> None:
        try:
            update(second, group_id, runs_after=after(first))
        except InvalidInput as exc:
            refused.append(str(exc))

    thread = threading.Thread(target=save_second)
    with session_scope() as session:
        runs_after = draft(group_id, runs_after=after(second))
        jobs.update_job(session, first, runs_after, actor=ADMIN, clock=lambda: LATER)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive(), "the second save waits for the first"
    thread.join(10)
    assert not thread.is_alive()
    assert len(refused) == 1
    assert edges() == [(first, second)]
