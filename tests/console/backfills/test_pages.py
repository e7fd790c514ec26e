"""Pages of backfills: the form with its list, the progress, the actions, and the ways to them."""

import re
from hashlib import sha256
from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.clock import DAY_MS, MINUTE_MS, now_ms
from app.domain.access.permissions import Right
from app.domain.enums import TriggerType
from app.domain.runs.trigger_keys import backfill_key, trigger_of
from app.models.audit import AuditEntry
from app.models.backfill import Backfill, BackfillInstant
from app.models.job import Job
from app.models.log import JobLog
from tests.console.pages import path_after, submit, text_of
from tests.support.console import PASSWORD, Console, add_group, add_job, add_user
from tests.support.factories import all_rows, make_job, make_log, only_row, save

pytestmark = pytest.mark.databases("sqlite")
#: five instants of a job that runs each minute
RANGE = {"from": "2024-05-01T10:00:00", "to": "2024-05-01T10:05:00"}


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def minutely(group_id: int, name: str = "load", **columns: Any) -> int:
    """Add a job that runs each minute, in UTC."""
    values = {"schedule_type": "CRON", "schedule_conf": "0 * * * * ?", "time_zone": "UTC"}
    return add_job(group_id, job_desc=name, **values | columns)


def ran(job_id: int, text: str, handle_code: int) -> JobLog:
    """Add a run of an instant of that minute."""
    at_ms = 1_714_557_600_000 + int(text[-2:]) * MINUTE_MS
    return make_log(
        only_row(Job, id=job_id),
        trigger_time=at_ms,
        logical_ms=at_ms,
        trigger_code=200,
        handle_code=handle_code,
    )


def listed_in(page: TestResponse) -> str:
    """Return what the button of a form sends; empty without the button."""
    found = re.search(r'name="listed" value="([0-9a-f]{32})"', page.text)
    return found[1] if found is not None else ""


def start(console: Console, path: str, **fields: str) -> TestResponse:
    """Look at the list of a form, then send its button."""
    listed = listed_in(submit(console, path, **fields))
    assert listed
    return submit(console, path, listed=listed, **fields)


def test_the_list_comes_before_the_start_and_follows_the_choices(admin: Console) -> None:
    job_id = minutely(add_group())
    ran(job_id, "10:01", 200)
    ran(job_id, "10:02", 500)
    path = f"/backfills/new?job={job_id}"
    page = text_of(submit(admin, f"/backfills/new/list?job={job_id}", **RANGE))
    assert "5 instants: 5 to run, 1 of which have succeeded before Run 5 instants" in page
    assert "Wednesday, May 1, 2024" in page
    assert "10:00 No run 10:01 Succeeded 10:02 Failed 10:03 No run" in page
    page = text_of(submit(admin, f"/backfills/new/list?job={job_id}", which="failed", **RANGE))
    assert "1 already succeeded, 3 without a run, 1 to run Run 1 instant" in page
    assert not all_rows(Backfill)  # Neither the list nor a form without its button starts anything.
    assert submit(admin, path, **RANGE).status_code == 200
    answer = start(admin, path, which="missing", max_running="3", on_failure="go_on", **RANGE)
    backfill = only_row(Backfill)
    assert path_after(answer) == f"/backfills/{backfill.id}"
    assert (backfill.total, backfill.which, backfill.max_running) == (3, "missing", 3)
    assert backfill.from_ms == 1_714_557_600_000


def test_what_has_changed_since_it_was_shown_is_shown_again(admin: Console) -> None:
    job_id = minutely(add_group())
    path = f"/backfills/new?job={job_id}"
    listed = listed_in(submit(admin, path, which="missing", **RANGE))
    ran(job_id, "10:01", 200)
    page = submit(admin, path, which="missing", listed=listed, **RANGE)
    assert page.status_code == 400
    assert "The list has changed since it was shown" in text_of(page)
    assert not all_rows(Backfill)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"from": "2024-05-01T10:00", "to": ""}, "Until: Enter a time"),
        ({"from": "2024-05-01T10:00", "to": "2024-05-01T09:00"}, "the end must be later than the start"),
        ({"from": "2024-05-01T10:00", "to": "2024-06-01T09:00"}, "more than 10000 instants"),
        ({"from": "2024-05-01T10:00", "to": "2199-06-01T09:00"}, "must not be in the future"),
        (RANGE | {"max_running": "101"}, "is not a whole number from 1 to 100"),
        (RANGE | {"which": "failed"}, "There is nothing to run"),
    ],
)
def test_what_cannot_be_run_has_no_button(admin: Console, fields: dict[str, str], text: str) -> None:
    job_id = minutely(add_group())
    part = submit(admin, f"/backfills/new/list?job={job_id}", **fields)
    assert text in text_of(part)
    assert not listed_in(part)


def test_a_list_without_an_instant_to_run_starts_nothing_and_says_so(admin: Console) -> None:
    path = f"/backfills/new?job={minutely(add_group())}&missed=1"
    empty = sha256().hexdigest()[:32]  # A script may send it although the page has no button.
    answer = submit(admin, path, listed=empty)
    assert answer.status_code == 200
    assert "There is nothing to run" in text_of(answer)


def test_an_overlapping_backfill_is_linked(admin: Console) -> None:
    job_id = minutely(add_group())
    start(admin, f"/backfills/new?job={job_id}", **RANGE)
    part = submit(admin, f"/backfills/new/list?job={job_id}", **RANGE)
    assert "Another backfill runs some of these instants" in text_of(part)
    assert f'href="/xxl-job-admin/backfills/{only_row(Backfill).id}"' in part.text
    assert not listed_in(part)


def test_the_zone_of_the_job_counts_and_is_named(admin: Console) -> None:
    job_id = minutely(add_group(), time_zone="Asia/Shanghai")
    assert "Local time in Asia/Shanghai" in text_of(admin.get(f"/backfills/new?job={job_id}"))
    start(admin, f"/backfills/new?job={job_id}", **RANGE)
    assert only_row(Backfill).from_ms == 1_714_557_600_000 - 8 * 60 * MINUTE_MS
    page = text_of(admin.get(f"/backfills/{only_row(Backfill).id}"))
    assert "2024-05-01 10:00 – 2024-05-01 10:05 Asia/Shanghai" in page
    assert "2024-05-01 10:04:00 To come" in page


def test_failed_runs_of_several_jobs_become_a_backfill_each(admin: Console) -> None:
    group_id = add_group()
    first, second = minutely(group_id, "first"), minutely(group_id, "second")
    ids = [ran(first, "10:01", 500).id, ran(first, "10:02", 500).id, ran(second, "10:01", 500).id]
    ran(first, "10:02", 200)  # The second one has succeeded since.
    assert "Run again as a backfill" in text_of(admin.get("/joblog?logStatus=2&range=all"))
    assert "data-tick" not in admin.get("/joblog?range=all").text
    path = "/backfills/new?" + "&".join(f"id={each}" for each in ids)
    page = text_of(admin.get(path))
    assert "3 instants are chosen. Each job gets a backfill of its own." in page
    assert "1 chosen instant has succeeded and is left out." in page
    assert f"{first} first : 1 instant: 1 to run {second} second : 1 instant: 1 to run" in page
    assert path_after(start(admin, path)).startswith("/backfills?done=backfills_started")
    assert [(row.job_id, row.total) for row in all_rows(Backfill)] == [(first, 1), (second, 1)]


def test_progress_state_and_result_of_each_instant_are_shown(admin: Console) -> None:
    job_id = minutely(add_group(), "nightly load")
    backfill_id = add_backfill(job_id, "failed", "succeeded", "failed", "waiting", "waiting")
    page = text_of(admin.get(f"/backfills/{backfill_id}"))
    assert "Stopped at a failure · 2 of 4 instants have ended" in page
    assert "All 4 Succeeded 1 Failed 1 To come 2" in page
    assert "2024-05-01 10:01:00 Failed" in page
    only_failed = text_of(admin.get(f"/backfills/{backfill_id}?state=failed"))
    assert "2024-05-01 10:01:00 Failed" in only_failed
    assert "2024-05-01 10:00:00 Succeeded" not in only_failed
    listed = text_of(admin.get("/backfills"))
    assert f"{backfill_id} {job_id} nightly load" in listed
    assert "2 of 4 Stopped at a failure" in listed
    assert "No backfill matches" in text_of(admin.get("/backfills?state=done"))


def test_a_backfill_is_paused_resumed_and_cancelled(admin: Console) -> None:
    job_id = minutely(add_group())
    start(admin, f"/backfills/new?job={job_id}", **RANGE)
    path = f"/backfills/{only_row(Backfill).id}"
    assert "Nothing starts: no scheduler is running" in text_of(admin.get(path))
    submit(admin, f"{path}/pause")
    paused = text_of(admin.get(path))
    assert "Paused ·" in paused
    assert "Nothing further starts until it is resumed" in paused
    submit(admin, f"{path}/resume")
    assert only_row(Backfill).state == "running"
    question = text_of(admin.get(f"{path}/cancel"))
    assert "4 instants that have not started do not run." in question
    assert "1 run goes on to its end, unless it is killed" in question
    assert "Kill the runs in progress" in question
    submit(admin, f"{path}/cancel")
    assert only_row(Backfill).state == "cancelled"
    actions = [row.action for row in all_rows(AuditEntry) if row.action.startswith("job.backfill")]
    assert actions == ["job.backfill", *(f"job.backfill_{name}" for name in ("pause", "resume", "cancel"))]
    history = admin.get("/user/audit")
    assert "started a backfill of job" in text_of(history)
    assert f'{path}">{only_row(Backfill).id}</a>' in history.text


def test_resuming_after_a_failure_says_what_runs_again(admin: Console) -> None:
    backfill_id = add_backfill(minutely(add_group()), "failed", "succeeded", "failed", "waiting")
    question = text_of(admin.get(f"/backfills/{backfill_id}/resume"))
    assert "1 instant that has failed runs again, with the same logical time." in question
    submit(admin, f"/backfills/{backfill_id}/resume")
    assert only_row(Backfill).attempt == 2


def test_the_rest_of_a_cancelled_backfill_is_one_of_its_own(admin: Console) -> None:
    job_id = minutely(add_group())
    backfill_id = add_backfill(job_id, "cancelled", "succeeded", "failed", "withdrawn", "withdrawn")
    ran(job_id, "10:03", 200)  # It has succeeded since.
    page = admin.get(f"/backfills/{backfill_id}")
    assert "Cancelled · 2 of 4 instants have ended" in text_of(page)
    link = re.search(r'href="/xxl-job-admin(/backfills/new\?rest=[^"]+)"', page.text)
    assert link is not None
    start(admin, link[1].replace("&amp;", "&"))
    rest = all_rows(Backfill)[-1]
    assert (rest.id != backfill_id, rest.total, rest.from_ms) == (True, 2, 1_714_557_600_000 + MINUTE_MS)
    done_id = add_backfill(job_id, "done", "succeeded")
    assert "Run the rest" not in text_of(admin.get(f"/backfills/{done_id}"))


def test_the_job_shows_its_active_backfills_and_a_run_the_one_it_belongs_to(admin: Console) -> None:
    job_id = minutely(add_group())
    backfill_id = add_backfill(job_id, "paused", "running", "waiting")
    assert f"Backfill {backfill_id} Paused" in text_of(admin.get(f"/jobinfo/{job_id}"))
    at_ms = 1_714_557_600_000
    trigger = trigger_of(job_id, backfill_key(backfill_id, at_ms))
    assert trigger is not None
    log = make_log(
        only_row(Job, id=job_id),
        logical_ms=at_ms,
        trigger_type=TriggerType.BACKFILL.value,
        trigger_key=trigger.number,
        trigger_code=200,
    )
    assert f'/backfills/{backfill_id}"' in admin.get(f"/joblog/{log.id}").text
    assert f">{log.id}</a>" in admin.get(f"/backfills/{backfill_id}").text


def test_readers_see_the_progress_and_cannot_change_it(console: Console) -> None:
    group_id = add_group()
    job_id, foreign = minutely(group_id), minutely(add_group("other"), "foreign")
    backfill_id, foreign_id = add_backfill(job_id, "paused", "waiting"), add_backfill(foreign, "paused")
    add_user("reader", [group_id], rights={group_id: frozenset({Right.VIEW})})
    reader = console.log_in("reader", PASSWORD)
    page = reader.get(f"/backfills/{backfill_id}")
    assert page.status_code == 200
    assert "/resume" not in page.text
    assert submit(reader, f"/backfills/{backfill_id}/resume").status_code == 403
    assert reader.get(f"/backfills/new?job={job_id}").status_code == 403
    assert reader.get(f"/backfills/{foreign_id}").status_code == 404
    assert "foreign" not in text_of(reader.get("/backfills"))


def add_backfill(job_id: int, state: str, *states: str) -> int:
    """Store a backfill with instants from 10:00 on; return its id."""
    job, at_ms = only_row(Job, id=job_id), 1_714_557_600_000
    backfill = save(
        Backfill(
            job_id=job_id,
            job_group=job.job_group,
            job_name=job.job_desc,
            from_ms=at_ms,
            to_ms=at_ms + len(states) * MINUTE_MS,
            which="all",
            run_order="oldest_first",
            children="none",
            on_failure="stop",
            state=state,
            total=len(states),
            summary=f'{{"instants": {len(states)}, "missing": {len(states)}, "to_run": {len(states)}}}',
            user_id=1,
            created_ms=now_ms() - DAY_MS,
            updated_ms=now_ms(),
        )
    )
    for number, each in enumerate(states):
        has_run = int(each != "waiting")
        save(
            BackfillInstant(
                backfill_id=backfill.id,
                logical_ms=at_ms + number * MINUTE_MS,
                number=number,
                state=each,
                attempt=has_run,
            )
        )
    return backfill.id


def test_the_pages_of_a_job_with_an_unknown_zone_show_the_times_of_the_installation(admin: Console) -> None:
    job_id = make_job(schedule_type="CRON", schedule_conf="0 * * * * ?", time_zone="Nope/Zone").id
    times = {"from_ms": 0, "to_ms": 1, "created_ms": 0, "updated_ms": 0, "state": "paused"}
    asked = {"which": "all", "run_order": "oldest_first", "children": "none", "on_failure": "stop"}
    row = save(Backfill(job_id=job_id, job_group=1, user_id=0, total=1, summary="{}", **times, **asked))
    for path in ("/backfills", f"/backfills/{row.id}", f"/backfills/new?job={job_id}"):
        assert admin.get(path).status_code == 200
