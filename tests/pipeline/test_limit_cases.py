"""Limits where others interfere: users, other programs, edits, a clock, a database that refuses data.

Source: docs/reference/limits.md.
"""

import pytest

from app.clock import DAY_MS, Millis
from app.database.engine import session_scope, transact
from app.domain.access.permissions import system_actor
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import Limit
from app.pipeline.limits.claim_limited import claim_limited
from app.pipeline.limits.limit_usage import LOOKED_AHEAD, LimitUsage
from app.pipeline.unwritable import UnwritableFire, refuse
from app.services.jobs.batch_triggers import BatchEntry, trigger_jobs
from app.services.jobs.jobs import trigger_job
from app.services.runs import waiting as waiting_runs
from app.store.fires.clock_return import bring_back_open
from app.store.limits import slots
from app.store.limits.slots import JobKey, LimitShares, WaitingRuns
from app.store.limits.waiting import find_to_replace
from tests.pipeline.limit_steps import claim_all, look, share, waiting
from tests.pipeline.steps import as_due, call_back, claim_fires, claimer, give_back_all, record_sent, sent
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_fire, make_job, only_row, save
from tests.support.plan import every_database

pytestmark = every_database

MINUTE: Millis = 60_000
ADMIN = system_actor("tests")


def set_job(job: Job, **values: object) -> None:
    with session_scope() as session:
        for name, value in values.items():
            setattr(session.get_one(Job, job.id), name, value)


def test_a_run_that_a_user_starts_meanwhile_does_not_wait_again(database: str) -> None:
    job = make_job(max_running=1)
    make_fire(job)
    claim_all()
    fire = make_fire(job)
    claim_all()
    found = as_due(waiting())
    transact(lambda session: waiting_runs.start_now(session, f"w{fire.id}", actor=ADMIN, now_ms=T0))
    batch = transact(lambda session: claim_limited(session, found, claimer(), now_ms=T0))
    assert not batch.waiting
    assert only_row(Fire, id=fire.id).state == "PENDING"
    assert [run.fire_id for run in claim_fires([only_row(Fire, id=fire.id)]).claims] == [fire.id]


def test_a_forced_run_counts_for_its_key(database: str) -> None:
    job = make_job(max_running=1, limit_key="${param.customer}", executor_param='{"customer":"globex"}')
    params = ('{"customer":"acme"}', None, "no json")
    for param in params[:2]:
        with session_scope() as session:
            trigger_job(
                session, job.id, executor_param=param, address_list="", actor=ADMIN, now_ms=T0, force=True
            )
    entries = [*(BatchEntry(job.id, param, "", force=True) for param in params), BatchEntry(job.id, "", "")]
    transact(lambda session: trigger_jobs(session, entries, actor=ADMIN, now_ms=T0))
    forced = [fire for fire in all_rows(Fire) if fire.admitted_ms]
    assert sorted(fire.limit_key for fire in forced) == ["", "acme", "acme", "globex", "globex"]
    claim_fires(forced)
    make_fire(job, executor_param=params[0])
    claim_all()
    waits = [fire.waits_for.split(" ")[1:3] for fire in waiting() if fire.limit_key == "acme"]
    assert waits == [["full", "2/1"]]


def test_shards_of_a_broadcast_that_a_user_starts_keep_its_key(database: str) -> None:
    job = make_job(
        addresses=f"{FIRST},{SECOND}",
        executor_route_strategy="SHARDING_BROADCAST",
        max_running=1,
        limit_key="${param}",
    )
    make_fire(job, executor_param="acme", admitted_ms=T0, limit_key="acme")
    claim_fires()
    assert [fire.limit_key for fire in all_rows(Fire)] == ["acme", "acme"]


def test_a_waiting_run_of_a_job_that_is_gone_is_deleted(database: str) -> None:
    job = make_job(max_running=1)
    make_fire(job)
    claim_all()
    make_fire(job)
    claim_all()
    with session_scope() as session:
        session.delete(session.get_one(Job, job.id))  # as another program does
    look()
    assert not waiting()
    assert not slots.has_waiting()


def test_a_run_claimed_before_its_job_had_limits_goes_on(database: str) -> None:
    job = make_job()
    make_fire(job)
    (run,) = claim_fires().claims
    give_back_all(run)
    set_job(job, max_running=1, when_full="skip")
    make_fire(job)
    due = as_due([fire for fire in all_rows(Fire) if fire.id != run.fire_id])
    transact(lambda session: claim_limited(session, due, claimer(), now_ms=T0))
    batch = claim_fires([only_row(Fire)])
    assert ([each.log_id for each in batch.claims], batch.limited_fires) == ([run.log_id], [])


def test_keys_that_jobs_have_in_common_hide_none(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "ROUND_ROWS", 4)
    monkeypatch.setattr(slots, "_FIRST", slots._FIRST.limit(4))
    monkeypatch.setattr(slots, "ROUNDS_MAX", 2)
    job, other = make_job(), make_job()
    for number in range(20):
        make_fire(job, state="WAITING", deadline_ms=T0 + number, limit_key="acme")
    hidden = [
        make_fire(job, state="WAITING", deadline_ms=T0 + MINUTE, limit_key="globex"),
        make_fire(other, state="WAITING", deadline_ms=T0 + MINUTE + 1, limit_key="acme"),
    ]
    room = {JobKey(job.id, "globex"): 1, JobKey(other.id, "acme"): 1}
    first = transact(lambda session: slots.find_first(session, room))
    assert [fire.id for fire, _ in first] == [fire.id for fire in hidden]


@pytest.mark.parametrize("most", [1, 2, 100])
def test_all_sets_of_keys_are_looked_for(database: str, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(slots, "KEY_SETS_MAX", most)
    jobs = [make_job() for _ in range(3)]
    keys = ("a", "b", "c")
    fires = [
        make_fire(job, state="WAITING", limit_key=key)
        for job, own in zip(jobs, (keys[:1], keys[:2], keys), strict=True)
        for key in own
    ]
    room = {JobKey(fire.job_id, fire.limit_key): 1 for fire in fires}
    assert len(transact(lambda session: slots.find_first(session, room))) == len(fires)


def test_keys_that_collations_take_for_equal_are_counted_by_themselves(database: str) -> None:
    job = make_job(max_running=1, limit_key="${param}")
    for key in ("acme", "ACME", "acme", "ACME", "acme "):
        make_fire(job, executor_param=key)
    runs = claim_all().claims
    assert len(runs) == 3
    assert transact(lambda session: slots.count_waiting(session, None)) == {
        JobKey(job.id, "acme"): WaitingRuns(1),
        JobKey(job.id, "ACME"): WaitingRuns(1),
    }
    for run in runs:
        call_back(run.log_id)
    assert len(look().claims) == 2


def test_a_run_that_others_bring_does_not_overtake(database: str) -> None:
    """A run of A brings B, which waits for the same limit, but behind C for another one."""
    first, second = (save(Limit(kind="named", name=name, slots=3)) for name in ("first", "second"))
    new, brought, heavy, running = (make_job() for _ in range(4))
    share(first, new)
    share(first, brought)
    share(second, running)
    share(second, heavy, 3)
    with session_scope() as session:
        from app.models.limit import LimitUse

        session.add(LimitUse(job_id=brought.id, limit_id=second.id, weight=1))
    make_fire(running)
    claim_all()
    make_fire(heavy, due_time=T0 + 1)
    claim_all(T0 + 1)
    make_fire(brought, due_time=T0 + 2)
    claim_all(T0 + 2)
    assert [fire.job_id for fire in waiting()] == [heavy.id, brought.id]
    make_fire(new, due_time=T0 + 3)
    claim_all(T0 + 3)
    assert brought.id in {fire.job_id for fire in waiting()}


def test_a_waiting_run_whose_data_the_database_refuses_ends(database: str) -> None:
    job = make_job(max_running=1)
    make_fire(job)
    claim_all()
    fire = make_fire(job)
    claim_all()
    refused = transact(
        lambda session: refuse(session, [UnwritableFire(fire.id, "too long")], zone="UTC", now_ms=T0)
    )
    assert [run.job_id for run in refused] == [job.id]
    assert not waiting()


def test_waiting_runs_return_with_the_clock(database: str) -> None:
    job = make_job(max_running=1, max_wait_s=60)
    make_fire(job)
    claim_all(T0 + DAY_MS)
    make_fire(job, due_time=T0 + DAY_MS, trigger_type="MANUAL", fire_key=f"manual:{T0 + DAY_MS}-{'a' * 32}")
    make_fire(job, due_time=T0 + DAY_MS, trigger_type="MANUAL", fire_key=f"once:{T0 + DAY_MS}-{'b' * 32}")
    claim_all(T0 + DAY_MS + 1)
    assert len(waiting()) == 2
    transact(lambda session: bring_back_open(session, now_ms=T0, soon_ms=T0 + 5_000, far_ms=T0 + 5 * MINUTE))
    fires = {fire.fire_key.partition(":")[0]: fire for fire in waiting()}
    manual, once = fires["manual"], fires["once"]
    assert (manual.due_time, manual.deadline_ms, manual.lease_until) == (T0, T0, T0 + MINUTE + 1)
    assert once.due_time == T0 + DAY_MS


def test_runs_are_no_longer_replaced_once_their_job_is_to_wait(database: str) -> None:
    from app.domain.runs.evidence import Fate

    job = make_job(max_running=1, when_full="replace")
    make_fire(job)
    (run,) = claim_all().claims
    record_sent(sent(run, Fate.ACCEPTED))
    make_fire(job)
    claim_all()
    assert [log.id for log in transact(find_to_replace)] == [run.log_id]
    set_job(job, when_full="wait")
    assert not transact(find_to_replace)


def test_no_more_runs_are_looked_at_than_a_shared_limit_may_have(database: str) -> None:
    sharing, other = [make_job() for _ in range(5)], make_job()
    fires = [make_fire(job, state="WAITING", deadline_ms=T0 + n) for n, job in enumerate([*sharing, other])]
    room = {JobKey(fire.job_id, ""): 3 for fire in fires}
    limits = {pair: frozenset({7}) for pair in room} | {JobKey(other.id, ""): frozenset[int]()}
    first = transact(lambda session: slots.find_first(session, room, LimitShares({7: 2}, limits)))
    assert [fire.id for fire, _ in first] == [fires[0].id, fires[1].id, fires[5].id]


def test_a_claim_looks_beyond_the_free_slots(database: str) -> None:
    limit = save(Limit(kind="named", name="database", slots=2))
    jobs = [make_job() for _ in range(3)]
    for job in jobs:
        share(limit, job)
        for _ in range(20):
            make_fire(job)
    claim_all()
    assert len(waiting()) == 58
    ended = only_row(Fire, id=min(fire.id for fire in all_rows(Fire, state="SENDING")))
    assert call_back(ended.log_id or 0)
    usage = transact(lambda session: LimitUsage.read(session, [jobs[0].id]))
    room = usage.room()
    assert usage.share(room).most == {limit.id: 1 + LOOKED_AHEAD}
    assert len(look().claims) == 1
