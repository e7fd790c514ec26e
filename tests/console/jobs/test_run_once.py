"""Run once: from the form to the run it made, and back to the list."""

import re
from datetime import datetime
from urllib.parse import quote, unquote
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, now_ms
from app.database.engine import session_scope, transact
from app.domain.runs.trigger_keys import Trigger
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import Node
from app.store.fires import queue as fires
from tests.console.pages import path_after, submit, text_of
from tests.pipeline.steps import claim_fires
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, all_rows, only_row, save

LIST = "/xxl-job-admin/jobinfo?jobDesc=nightly&length=25"


@pytest.fixture
def job_id(admin: Console) -> int:
    return add_job(add_group())


@pytest.fixture
def waiting(admin: Console, job_id: int) -> str:
    """The page of a run that was queued from a filtered list."""
    return path_after(submit(admin, f"/jobinfo/{job_id}/run", executor_param="", next=LIST))


def test_the_page_says_why_the_run_waits(admin: Console, job_id: int, waiting: str) -> None:
    page = admin.get(waiting)
    assert "Waiting" in text_of(page)
    assert "no scheduler is running; start the workers: xxl-job-workers" in text_of(page)
    assert f'href="{LIST.replace("&", "&amp;")}"' in page.text
    assert 'http-equiv="refresh"' in page.text
    assert "refresh=auto" in page.text


def test_a_run_can_be_planned_for_a_time(admin: Console, job_id: int) -> None:
    zone = ZoneInfo("Asia/Shanghai")
    later = datetime.fromtimestamp(now_ms() // 1000 + 7_200, zone)
    form = {"when": "at", "at": later.strftime("%Y-%m-%dT%H:%M:%S")}
    page = path_after(submit(admin, f"/jobinfo/{job_id}/run", **form, next=LIST))
    assert f"planned for {later:%Y-%m-%d %H:%M:%S}" in text_of(admin.get(page))
    assert only_row(Fire).due_time == int(later.timestamp()) * 1000


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("2020-01-01T00:00", "This time has passed; choose a later one"),
        ("", '"" is not a time such as 2030-01-31 08:00:00'),
        ("tomorrow", '"tomorrow" is not a time such as 2030-01-31 08:00:00'),
        ("2990-01-01T00:00", "The run must be due in the next 366 days"),
    ],
)
def test_a_time_that_cannot_be_planned_is_refused_at_its_field(
    admin: Console, job_id: int, at: str, error: str
) -> None:
    page = submit(admin, f"/jobinfo/{job_id}/run", when="at", at=at)
    assert page.status_code == 400
    assert error in text_of(page)
    assert all_rows(Fire) == []
    assert "Run again" not in text_of(page)


def test_the_page_says_that_workers_hang(admin: Console, waiting: str) -> None:
    at_ms = now_ms()
    save(Node(name="one", kind="workers", started_ms=at_ms, heartbeat_ms=at_ms + MINUTE_MS, version="1"))
    page = text_of(admin.get(waiting))
    assert "no scheduler is scanning; see the log of the workers" in page


@pytest.mark.parametrize("is_sending", [False, True])
def test_only_a_busy_executor_group_is_said_to_be_at_capacity(
    admin: Console, job_id: int, waiting: str, is_sending: bool
) -> None:
    at_ms = now_ms()
    times = dict.fromkeys(("started_ms", "heartbeat_ms", "scanned_ms"), at_ms)
    save(Node(name="one", kind="workers", version="1", **times))
    with session_scope() as session:
        session.scalars(select(Fire)).one().due_time = at_ms - 5_000
    if is_sending:
        save(Fire(job_id=job_id, fire_key="a", due_time=at_ms, trigger_type="CRON", state="SENDING"))
    page = text_of(admin.get(waiting))
    assert ("its instances are at capacity, or the scheduler is behind" in page) is is_sending
    assert ("not claimed yet; if that lasts, see the log of the workers" in page) is not is_sending


def test_the_form_sent_again_leads_to_the_same_run(admin: Console, job_id: int) -> None:
    path = f"/jobinfo/{job_id}/run"
    key = key_of(admin, path)
    assert key != key_of(admin, path)
    first, again = (path_after(submit(admin, path, executor_param="", form_key=key)) for _ in range(2))
    assert unquote(again) == f"{first}&done=queued_before"
    fire = only_row(Fire)
    claim_fires([fire], now_ms=fire.due_time)
    page = admin.get(path_after(admin.get(again)))
    assert "This form was already submitted, so nothing was queued again." in text_of(page)


def test_a_refused_form_keeps_its_key(admin: Console, job_id: int) -> None:
    page = submit(admin, f"/jobinfo/{job_id}/run", executor_param="", address_list="?", form_key="0" * 32)
    assert page.status_code == 400
    assert f'name="form_key" value="{"0" * 32}"' in page.text


def key_of(console: Console, path: str) -> str:
    """Return the key of the form that the page at ``path`` shows."""
    found = re.search(r'name="form_key" value="([0-9a-f]{32})"', console.get(path).text)
    assert found is not None
    return found.group(1)


def test_it_leads_to_the_run_once_it_is_claimed_and_from_there_to_the_list(
    admin: Console, job_id: int, waiting: str
) -> None:
    fire = only_row(Fire)
    claim_fires([fire], now_ms=fire.due_time)
    log_id = only_row(JobLog).id
    address = path_after(admin.get(waiting))
    assert address == f"/joblog/{log_id}?next={quote(LIST, safe='/?')}"
    assert f'href="{LIST.replace("&", "&amp;")}"' in admin.get(address).text


@pytest.fixture
def trigger(job_id: int) -> Trigger:
    """A run that is planned for later."""
    due_ms = now_ms() + 3_600_000

    def plan(session: Session) -> Trigger:
        return fires.insert_manual(
            session, job_id, executor_param=None, address_list=None, due_ms=due_ms, is_planned=True
        )

    return transact(plan)


def test_a_run_planned_for_later_says_when_it_is_due(admin: Console, job_id: int, trigger: Trigger) -> None:
    page = admin.get(f"/jobinfo/{job_id}/run/{trigger.id}")
    assert re.search(r"The run is planned for \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", text_of(page))
    assert "refresh" not in page.text.partition("</head>")[0]
    assert f"/jobinfo/{job_id}/run/{trigger.id}?" in admin.get(f"/jobinfo/{job_id}").text
    assert admin.get(f"/jobinfo/{job_id + 1}/run/{trigger.id}").status_code == 404


def test_a_run_that_was_deleted_is_not_awaited(admin: Console, job_id: int, waiting: str) -> None:
    transact(lambda session: fires.delete_fires(session, [only_row(Fire).id]))
    page = admin.get(waiting)
    assert "has been deleted" in text_of(page)
    assert "refresh" not in page.text.partition("</head>")[0]
    assert admin.get(f"/jobinfo/{job_id}/run/nonsense").status_code == 404


def test_a_planned_run_is_withdrawn_from_the_job_and_from_its_own_page(
    admin: Console, job_id: int, trigger: Trigger
) -> None:
    address = f"/jobinfo/{job_id}/run/{trigger.id}"
    for page in (f"/jobinfo/{job_id}", address):
        assert f'href="/xxl-job-admin{address}/withdraw' in admin.get(page).text
    assert "Withdraw the run?" in text_of(admin.get(f"{address}/withdraw"))
    assert path_after(submit(admin, f"{address}/withdraw")).startswith(f"/jobinfo/{job_id}?")
    assert all_rows(Fire) == []
    assert "was withdrawn" in text_of(admin.get(address))
    for again in (admin.get(f"{address}/withdraw"), submit(admin, f"{address}/withdraw")):
        assert path_after(again).startswith(address)


def test_a_run_that_has_started_is_not_withdrawn(admin: Console, job_id: int, waiting: str) -> None:
    fire = only_row(Fire)
    claim_fires([fire], now_ms=fire.due_time)
    address = waiting.partition("?")[0]
    for answer in (admin.get(f"{address}/withdraw"), submit(admin, f"{address}/withdraw")):
        assert path_after(answer).startswith(address)
    assert f"/joblog/{only_row(JobLog).id}" in path_after(admin.get(address))
    assert "/withdraw" not in admin.get(f"/jobinfo/{job_id}").text


def test_a_repeated_run_continues_from_the_checkpoint_if_wanted(admin: Console, job_id: int) -> None:
    values = {"job_group": 1, "job_id": job_id, "trigger_time": T0, "trigger_code": 200, "checkpoint": "3"}
    failed, succeeded = (save(JobLog(**values, handle_code=code)).id for code in (500, 200))
    box = f'name="repeats" value="{failed}" checked'
    assert box in admin.get(f"/jobinfo/{job_id}/run?log={failed}").text
    assert "repeats" not in admin.get(f"/jobinfo/{job_id}/run?log={succeeded}").text
    submit(admin, f"/jobinfo/{job_id}/run", executor_param="", repeats=str(failed))
    submit(admin, f"/jobinfo/{job_id}/run", executor_param="", repeats=str(succeeded))
    submit(admin, f"/jobinfo/{job_id}/run", executor_param="")
    assert [fire.repeats_log_id for fire in all_rows(Fire)] == [failed, None, None]


def at_local(ms: int, shape: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return datetime.fromtimestamp(ms // 1000, ZoneInfo("Asia/Shanghai")).strftime(shape)


def test_a_run_can_stand_for_another_time(admin: Console, job_id: int) -> None:
    assert 'name="logical_time"' in admin.get(f"/jobinfo/{job_id}/run").text
    submit(admin, f"/jobinfo/{job_id}/run", logical_time=at_local(T0))
    assert only_row(Fire).logical_ms == T0


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("3000-01-01T00:00:00", "must lie between 1970 and 31 days from now"),
        ("1969-12-31T00:00:00", "must lie between 1970 and 31 days from now"),
        ("yesterday", '"yesterday" is not a time such as 2030-01-31 08:00:00'),
    ],
)
def test_a_logical_time_that_cannot_be_given_is_said_at_its_field(
    admin: Console, job_id: int, text: str, error: str
) -> None:
    page = submit(admin, f"/jobinfo/{job_id}/run", logical_time=text)
    assert page.status_code == 400
    assert error in text_of(page)
    assert 'id="logical_time-error"' in page.text
    assert all_rows(Fire) == []


def repeated_run(job_id: int) -> JobLog:
    group_id = only_row(Job).job_group
    return save(
        JobLog(
            job_id=job_id,
            job_group=group_id,
            trigger_time=T0 + 600_000,
            logical_ms=T0 + 123,
            trigger_code=200,
            handle_code=200,
        )
    )


def test_running_again_shows_the_time_of_the_run_and_keeps_it_exactly(admin: Console, job_id: int) -> None:
    log = repeated_run(job_id)
    page = admin.get(f"/jobinfo/{job_id}/run?log={log.id}").text
    assert f'value="{at_local(T0)}"' in page
    assert f'name="repeated_ms" value="{T0 + 123}"' in page
    submit(admin, f"/jobinfo/{job_id}/run", logical_time=at_local(T0), repeated_ms=str(T0 + 123))
    assert only_row(Fire).logical_ms == T0 + 123


@pytest.mark.parametrize(("text", "logical_ms"), [(at_local(T0 + 60_000), T0 + 60_000), ("", None)])
def test_running_again_may_change_it(admin: Console, job_id: int, text: str, logical_ms: int | None) -> None:
    submit(admin, f"/jobinfo/{job_id}/run", logical_time=text, repeated_ms=str(T0 + 123))
    fire = only_row(Fire)
    assert fire.logical_ms == (fire.due_time // 1000 * 1000 if logical_ms is None else logical_ms)
