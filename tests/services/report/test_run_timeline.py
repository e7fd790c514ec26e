"""Run timeline: what it shows, to which user, and its limits."""

from collections import defaultdict
from typing import Any

import pytest

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right, system_actor
from app.models.job import Job
from app.models.skip import Skip
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.services.report import run_timeline as service
from app.services.report.run_timeline import RunTimeline, WaitingFires, run_timeline
from app.store.pickers.overview import find_open_runs
from tests.support.factories import T0, make_fire, make_group, make_job, make_log, save

HOUR_MS = 60 * MINUTE_MS
ADMIN = system_actor("test")


def timeline(actor: Actor = ADMIN, within_ms: Millis = HOUR_MS) -> RunTimeline:
    with read_scope() as session:
        open_runs = find_open_runs(session, actor.group_ids(Right.VIEW))
        return run_timeline(session, actor, open_runs, within_ms=within_ms, now_ms=T0)


def run(job: Job, ago_ms: Millis, took_ms: Millis | None = SECOND_MS, **more: Any) -> int:
    ended = {"handle_code": 200, "handle_time": T0 - ago_ms + took_ms} if took_ms is not None else {}
    return make_log(job, trigger_time=T0 - ago_ms, **{**ended, **more}).id


def skip(job: Job, ago_ms: Millis, skipped: int = 1, reason: str = "misfire") -> None:
    at_ms = T0 - ago_ms
    save(Skip(job_id=job.id, from_ms=at_ms, to_ms=at_ms, skipped=skipped, reason=reason, recorded_ms=at_ms))


def shown(found: RunTimeline) -> dict[int, list[int]]:
    return {row.job.id: [run.id for run in row.runs] for row in found.rows}


def test_without_runs_the_timeline_is_empty(database: str) -> None:
    make_job()
    found = timeline()
    assert (found.rows, found.jobs_cut, found.looked_cut, found.runs_cut) == ([], False, False, None)
    assert (found.from_ms, found.to_ms) == (T0 - HOUR_MS, T0)


def test_readers_share_a_timeline_for_a_moment(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnswerCache, "is_on", True)
    monkeypatch.setattr(service, "_timelines", defaultdict(lambda: AnswerCache[RunTimeline](LATELY_MS)))
    job = make_job()
    skip(job, 20 * MINUTE_MS, skipped=4)
    first = timeline()
    run(job, 2 * HOUR_MS)
    assert timeline() is first
    assert [missed.skipped for missed in first.rows[0].skips] == [4], "without its session"
    assert [len(row.runs) for row in timeline(within_ms=6 * HOUR_MS).rows] == [1], "for this period alone"


def test_runs_are_ordered_by_time_and_jobs_by_problems(database: str) -> None:
    quiet, busy, failing, missed = make_job(), make_job(), make_job(), make_job()
    first, second = run(busy, 9 * MINUTE_MS), run(busy, 5 * MINUTE_MS)
    only = run(quiet, 5 * MINUTE_MS)
    failure = run(failing, 3 * MINUTE_MS, handle_code=500)
    skip(missed, 20 * MINUTE_MS, skipped=4)
    skip(quiet, 20 * MINUTE_MS, skipped=9, reason="blackout")
    run(quiet, 2 * HOUR_MS)
    found = timeline()
    assert list(shown(found).items()) == [
        (missed.id, []),
        (failing.id, [failure]),
        (busy.id, [first, second]),
        (quiet.id, [only]),
    ]
    assert [skip_row.skipped for skip_row in found.rows[0].skips] == [4]
    assert len(shown(timeline(within_ms=6 * HOUR_MS))[quiet.id]) == 2


def test_waiting_fires_are_a_problem_of_their_job(database: str) -> None:
    busy, late = make_job(), make_job()
    run(busy, 5 * MINUTE_MS)
    for ago_ms in (90 * SECOND_MS, 30 * SECOND_MS, 0):
        make_fire(late, due_time=T0 - ago_ms)
    make_fire(busy, due_time=T0 - HOUR_MS, state="SENDING")
    rows = timeline().rows
    assert [(row.job.id, row.waiting) for row in rows] == [
        (late.id, WaitingFires(2, T0 - 90 * SECOND_MS)),
        (busy.id, None),
    ]
    of_user = Actor(
        user_id=5, username="norman", is_admin=False, rights={late.job_group: frozenset({Right.VIEW})}
    )
    assert [row.job.id for row in timeline(of_user).rows] == [late.id]


def test_a_waiting_fire_whose_run_is_shown_is_not_shown_again(database: str) -> None:
    """As one that was given back, or prepared; it is a problem of its job all the same."""
    busy, late, later = make_job(), make_job(), make_job()
    of_busy = run(busy, MINUTE_MS)
    ids = [run(late, ago_ms, None, trigger_code=0) for ago_ms in (2 * HOUR_MS, 10 * MINUTE_MS)]
    for log_id in ids:
        make_fire(late, due_time=T0 - 3 * HOUR_MS, log_id=log_id)
    only = run(later, 5 * MINUTE_MS, None, trigger_code=0)
    make_fire(later, due_time=T0 - 5 * MINUTE_MS, log_id=only)
    found = timeline()
    assert list(shown(found).items()) == [(late.id, ids[1:]), (later.id, [only]), (busy.id, [of_busy])]
    assert [row.waiting for row in found.rows] == [WaitingFires(1, T0 - 3 * HOUR_MS), None, None]


def test_intended_skips_are_shown_and_are_no_problem(database: str) -> None:
    stopped, busy = make_job(), make_job()
    skip(stopped, MINUTE_MS, skipped=50, reason="stopped")
    run(busy, MINUTE_MS)
    assert list(shown(timeline())) == [busy.id, stopped.id]


def test_runs_that_reach_into_the_period_are_shown(database: str) -> None:
    long, ended_before, still = make_job(), make_job(), make_job()
    reaching = run(long, 90 * MINUTE_MS, 50 * MINUTE_MS)
    later = run(long, MINUTE_MS)
    run(ended_before, 90 * MINUTE_MS, MINUTE_MS)
    recent = run(ended_before, MINUTE_MS)
    running = [run(still, ago * MINUTE_MS, None) for ago in (95, 80)]
    run(still, 25 * HOUR_MS, None)
    assert shown(timeline()) == {long.id: [reaching, later], ended_before.id: [recent], still.id: running}


def test_only_jobs_of_visible_groups_are_shown(database: str) -> None:
    of_user, other = make_group(), make_group(app_name="other-app")
    visible, foreign, moved = (
        make_job(job_group=of_user.id),
        make_job(job_group=other.id),
        make_job(job_group=other.id),
    )
    seen = run(visible, MINUTE_MS)
    run(foreign, MINUTE_MS, handle_code=500)
    run(foreign, 2 * HOUR_MS, None)
    run(moved, MINUTE_MS, job_group=of_user.id)  # ran before it was moved away
    skip(foreign, MINUTE_MS)
    user = Actor(user_id=5, username="norman", is_admin=False, rights={of_user.id: frozenset({Right.VIEW})})
    assert shown(timeline(user)) == {visible.id: [seen]}
    assert shown(timeline(Actor(user_id=6, username="nobody", is_admin=False))) == {}
    assert set(shown(timeline())) == {visible.id, foreign.id, moved.id}


def test_a_truncated_timeline_says_so(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "JOBS_MAX", 2)
    monkeypatch.setattr(service, "RUNS_MAX", 5)
    busy, failing, quiet = make_job(), make_job(), make_job()
    ids = [run(busy, ago * MINUTE_MS) for ago in range(9, 0, -1)]
    failure = run(failing, 3 * MINUTE_MS, handle_code=500)
    found = timeline()
    assert (shown(found), found.runs_cut, found.jobs_cut) == (
        {failing.id: [failure], busy.id: ids[-4:]},
        4,
        False,
    )
    run(quiet, MINUTE_MS)
    found = timeline()
    assert (set(shown(found)), found.jobs_cut, found.looked_cut) == ({failing.id, busy.id}, True, False)
    monkeypatch.setattr(service, "LOOKED_AT", 1)
    assert timeline().looked_cut
