"""Pages of rounds: what is missing, why one was not run, the list, the page of a job and of a run."""

import re
from typing import NamedTuple

import pytest

from app.clock import MINUTE_MS, now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.domain.enums import FireState, TriggerCode
from app.models.fire import Fire
from app.models.job import Job
from app.models.round import Arrival, Round
from tests.console.pages import submit, text_of, unnamed_path_after
from tests.support.console import Console, add_group, add_job, add_user
from tests.support.factories import all_rows, make_log, save

#: 2030-01-31, 12:00 in the zone of the tests
NOON_MS = 1_896_062_400_000

pytestmark = pytest.mark.databases("sqlite")


class Night(NamedTuple):
    """A job after two others, one of a foreign group."""

    group_id: int
    load: int
    check: int
    report: int


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


@pytest.fixture
def night() -> Night:
    group_id, other_id = add_group(), add_group("other-app", "Other")
    load, check = add_job(group_id, job_desc="Load"), add_job(other_id, job_desc="Check")
    value = f'{{"jobs": [{load}, {check}], "round": "day"}}'
    report = add_job(group_id, job_desc="Report", schedule_type="NONE", schedule_conf="", runs_after=value)
    return Night(group_id, load, check, report)


def add_round(job_id: int, state: str = "open", key: str = "d:2030-01-31", **values: object) -> int:
    at_ms = now_ms()
    row = Round(job_id=job_id, round_key=key, logical_ms=NOON_MS, opened_ms=at_ms, state=state)
    row.deadline_ms = at_ms + 60 * MINUTE_MS
    for name, value in values.items():
        setattr(row, name, value)
    return save(row).id


def add_arrival(round_id: int, job_id: int, outcome: str, **values: object) -> int:
    """Add a run of a predecessor and its arrival; return the id of the run."""
    job = next(job for job in all_rows(Job) if job.id == job_id)
    code = 200 if outcome == "succeeded" else 500
    log = make_log(job, trigger_code=TriggerCode.ACCEPTED, handle_code=code, handle_time=now_ms())
    save(
        Arrival(
            **{
                "round_id": round_id,
                "predecessor_id": job_id,
                "outcome": outcome,
                "log_id": log.id,
                "at_ms": now_ms(),
                **values,
            }
        )
    )
    return log.id


def test_an_open_round_says_what_it_waits_for(admin: Console, night: Night) -> None:
    round_id = add_round(night.report)
    log_id = add_arrival(round_id, night.check, "retrying")
    retry = Fire(job_id=night.check, fire_key=f"retry:{log_id}", trigger_type="RETRY", round_id=None)
    retry.due_time, retry.logical_ms = now_ms() + 5 * MINUTE_MS, NOON_MS
    save(retry)
    running = Fire(job_id=night.load, fire_key="cron:x", trigger_type="CRON", state=FireState.ACCEPTED.value)
    running.due_time = NOON_MS
    save(running)
    for path in (
        f"/jobinfo/{night.report}",
        "/rounds",
        f"/rounds?jobId={night.report}",
        f"/rounds/{round_id}",
    ):
        text = text_of(admin.get(path))
        assert re.search(r"Waiting ·\s+\d+ Load \(running\)", text), path
        assert re.search(r"Check \(failed \d\d:\d\d, retry at \d\d:\d\d\)", text), path
        parts = admin.get(path, headers={"X-Parts": ""}).get_json()["parts"]
        assert any("(running)" in text for text in parts.values()), path
    assert re.search(r'href="/xxl-job-admin/rounds" [^>]*aria-current="page"', admin.get("/rounds").text)
    assert "No round matches" in text_of(admin.get("/rounds?state=started"))
    assert "Runs of the same day belong together" in text_of(admin.get(f"/jobinfo/{night.report}"))
    assert f'href="/xxl-job-admin/jobinfo/{night.report}"' in admin.get(f"/jobinfo/{night.load}").text
    assert f'title="After {night.load}, {night.check}"' in admin.get("/jobinfo").text


def test_a_round_that_was_not_run_names_its_cause_and_the_run_what_it_stopped(
    admin: Console, night: Night
) -> None:
    round_id = add_round(night.report, "not_run", reason="predecessor", decided_ms=now_ms())
    log_id = add_arrival(round_id, night.check, "failed")
    with session_scope() as session:
        session.get_one(Round, round_id).cause_log_id = log_id
    text = text_of(admin.get(f"/rounds/{round_id}"))
    assert re.search(rf"Not run ·\s+its predecessor\s+{night.check} Check\s+failed, run\s+{log_id}", text)
    assert "Run only what is missing" in text
    assert f'href="/xxl-job-admin/joblog/{log_id}"' in admin.get("/rounds?state=not_run").text
    run = admin.get(f"/joblog/{log_id}")
    assert re.search(rf"Not run because of this:\s+{night.report} Report", text_of(run))
    assert f'href="/xxl-job-admin/rounds/{round_id}"' in run.text
    last = add_job(night.group_id, job_desc="Mail", runs_after=f'{{"jobs": [{night.report}]}}')
    values = {"reason": "predecessor", "cause_log_id": log_id, "decided_ms": now_ms()}
    passed_on = add_round(last, "not_run", **values)
    add_arrival(passed_on, night.report, "not_run", log_id=log_id, reason="misfire")
    text = text_of(admin.get(f"/rounds/{passed_on}"))
    assert re.search(rf"{night.report} Report\s+was not run, because of run\s+{log_id}", text)
    assert re.search(r"Not run\s+missed, and left out by the misfire strategy", text)
    question = text_of(admin.get(f"/rounds/{round_id}/run-missing"))
    assert f"Run {log_id} of Check is run again" in question
    answer = submit(admin, f"/rounds/{round_id}/run-missing")
    assert unnamed_path_after(answer) == f"/rounds/{round_id}?done=missing_run"
    assert [fire.job_id for fire in all_rows(Fire)] == [night.check]


def test_a_round_of_a_chain_counts_the_shards_of_a_broadcast(admin: Console, night: Night) -> None:
    values = {"reason": "predecessor", "decided_ms": now_ms(), "chain": 77}
    round_id = add_round(night.report, "not_run", "c:77", **values)
    add_arrival(round_id, night.load, "failed", shard=0, total=3)
    for shard in (1, 2):
        add_arrival(round_id, night.load, "succeeded", shard=shard, total=3)
    text = text_of(admin.get(f"/rounds/{round_id}"))
    assert re.search(r"Failed\s+2 of 3 shards succeeded", text)
    assert "Runs of its chain belong together" in text


def test_a_run_names_its_round_and_says_what_it_went_without(admin: Console, night: Night) -> None:
    job = next(job for job in all_rows(Job) if job.id == night.report)
    round_id = add_round(night.report, "started", incomplete=1, decided_ms=now_ms())
    log = make_log(job, trigger_code=TriggerCode.ACCEPTED, handle_code=200, round_id=round_id)
    with session_scope() as session:
        session.get_one(Round, round_id).log_id = log.id
    add_arrival(round_id, night.load, "succeeded")
    text = text_of(admin.get(f"/joblog/{log.id}"))
    assert re.search(r"Round of 2030-01-31\s*:\s+after\s+\d+ Load\s*,\s+\d+ Check\s+incomplete", text)
    assert re.search(r"Started, incomplete ·\s+without\s+\d+ Check \(no run\)", text_of(admin.get("/rounds")))


def test_a_run_whose_time_has_come_waits_for_its_round(admin: Console, night: Night) -> None:
    value = f'{{"jobs": [{night.load}], "round": "day"}}'
    gate = add_job(night.group_id, job_desc="Gate", runs_after=value)
    round_id = add_round(gate)
    fire = Fire(job_id=gate, fire_key="cron:gate", due_time=now_ms() - 1, trigger_type="CRON")
    fire.state, fire.round_id = FireState.GATED.value, round_id
    fire_id = save(fire).id
    words = rf"its round\s+is not complete:\s+{night.load} Load\s+\(no run yet\)"
    for path in ("/joblog", f"/jobinfo/{gate}", f"/joblog/waiting/w{fire_id}/start"):
        page = admin.get(path)
        assert re.search(words, text_of(page)), path
        assert f'href="/xxl-job-admin/rounds/{round_id}"' in page.text, path
    assert "its round" not in text_of(admin.get("/limits"))
    assert "It starts without them" in text_of(admin.get(f"/joblog/waiting/w{fire_id}/start"))
    submit(admin, f"/joblog/waiting/w{fire_id}/start")
    assert [each.state for each in all_rows(Fire)] == [FireState.PENDING]


def test_users_see_rounds_of_their_jobs_only_and_no_foreign_names(console: Console, night: Night) -> None:
    round_id = add_round(night.report)
    foreign = add_job(add_group("third-app", "Third"), runs_after=f'{{"jobs": [{night.load}]}}')
    hidden = add_round(foreign)
    add_arrival(round_id, night.check, "failed")
    add_user("bob", [night.group_id], rights={night.group_id: frozenset({Right.VIEW})})
    user = console.log_in("bob")
    for path in ("/rounds", f"/rounds/{round_id}", f"/jobinfo/{night.report}"):
        page = user.get(path)
        assert "a job of another group" in page.text, path
        assert "Check" not in text_of(page), path
    assert f"/rounds/{hidden}" not in user.get("/rounds").text
    assert user.get(f"/rounds/{hidden}").status_code == 404
    assert user.get(f"/rounds/{round_id}/run-missing").status_code in (403, 404)


def test_the_form_of_a_run_offers_all_that_follows_by_name(admin: Console, night: Night) -> None:
    page = text_of(admin.get(f"/jobinfo/{night.load}/run"))
    assert f"And all that follows In one chain, with the same logical time: {night.report} Report." in page
    assert "And all that follows" not in text_of(admin.get(f"/jobinfo/{night.report}/run"))
    assert re.search(
        r'<input [^>]*checked[^>]* id="chain"', admin.get(f"/jobinfo/{night.load}/run?chain=1").text
    )
    submit(admin, f"/jobinfo/{night.load}/run", executor_param="", when="now", chain="y", form_key="k")
    opened = all_rows(Round)
    assert [row.job_id for row in opened] == [night.report]
    chain = all_rows(Fire)[0].chain
    assert opened[0].chain == chain
    listed = text_of(admin.get(f"/rounds?chain={chain:015x}"))
    assert f"{night.report} Report" in listed
    assert re.search(r'href="/xxl-job-admin/rounds" [^>]*aria-current="page"', admin.get("/rounds").text)
    assert "No round matches" in text_of(admin.get(f"/rounds?chain={1:015x}"))
    root = make_log(
        next(job for job in all_rows(Job) if job.id == night.load), trigger_key=chain, chain=chain
    )
    again = f'href="/xxl-job-admin/jobinfo/{night.load}/run?log={root.id}&amp;chain=1"'
    assert again in admin.get(f"/joblog/{root.id}").text
    assert again in admin.get(f"/rounds/{opened[0].id}").text
    assert "with all that follows" in text_of(admin.get(f"/joblog/{root.id}"))
