"""Pictures of what jobs run after: of a job and of an executor, as a table, and who sees which jobs."""

import json
import re

import pytest
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.console.executors import graph as group_page
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.models.job import Job
from app.models.round import After, Round
from app.services.rounds import graph
from tests.console.pages import markup_of, text_of
from tests.support.console import PASSWORD, Console, add_group, add_job, add_user
from tests.support.factories import make_log, save

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def follow(
    group_id: int, name: str, *predecessors: int, rule: str = "all_succeeded", **values: object
) -> int:
    """Add a job that runs after these."""
    job_id = add_job(group_id, job_desc=name, schedule_type="NONE", schedule_conf="")
    with session_scope() as session:
        job = session.get_one(Job, job_id)
        if "schedule_type" in values:
            job.schedule_conf = "0 0 3 * * ?"
        for field, value in values.items():
            setattr(job, field, value)
        if predecessors:
            job.runs_after = json.dumps({"jobs": predecessors, "rule": rule})
        for predecessor_id in predecessors:
            session.add(After(job_id=job_id, predecessor_id=predecessor_id))
            session.get_one(Job, predecessor_id).has_followers = 1
    return job_id


def add_round(job_id: int, state: str) -> None:
    save(Round(job_id=job_id, round_key="t:1", logical_ms=1, opened_ms=now_ms(), state=state))


def run(job_id: int, **values: object) -> None:
    with session_scope() as session:
        job = session.get_one(Job, job_id)
        session.expunge(job)
    make_log(job, **values)


def boxes_of(page: TestResponse) -> list[str]:
    """Return the texts of the boxes in the order in which the keyboard reaches them."""
    boxes = re.findall(r"<foreignObject.*?</foreignObject>", markup_of(page))
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", box)).strip() for box in boxes]


def arrows_of(page: TestResponse) -> list[str]:
    """Return the classes of the arrows."""
    return re.findall(r'<path class="([^"]*)" d="[^"]*" marker-end="url\(#arrow\w*\)"/>(?!</svg>)', page.text)


def test_a_job_is_drawn_with_what_leads_to_it_and_what_follows_it(admin: Console) -> None:
    group_id = add_group()
    load = follow(group_id, "Load", schedule_type="CRON", trigger_status=1)
    check = follow(group_id, "Check")
    report = follow(group_id, "Report", load, check, rule="any_succeeded")
    child = follow(group_id, "Archive")
    follow(group_id, "Mail", report, schedule_type="CRON", child_jobid=str(child))
    alone = follow(group_id, "Alone")
    run(load, trigger_code=200, handle_code=500)
    run(report, trigger_code=200, handle_code=200)
    add_round(report, "open")
    page = admin.get(f"/jobinfo/{report}/graph")
    assert boxes_of(page) == [
        f"Load {load} On Failed",
        f"Check {check} Never ran",
        f"Report {report} Waiting any one",
        f"Mail {child + 1} Off Never ran",
        f"Archive {child} Never ran",
    ]
    assert arrows_of(page) == ["child", "after own", "after own", "after own"]
    assert page.text.count('aria-current="true"') == 1
    assert re.search(
        rf'<a class="job-box warning" href="/xxl-job-admin/jobinfo/{report}" [^>]*aria-current', page.text
    )
    table = text_of(page).partition("As a table")[2]
    assert (
        f"{report} Report none Waiting {load} Load {check} Check Runs once one before it has succeeded"
        in table
    )
    assert f"{child} Archive as a child" in table
    assert "What follows what" in text_of(admin.get(f"/jobinfo/{load}"))
    assert "It stands alone" in text_of(admin.get(f"/jobinfo/{alone}/graph"))


@pytest.mark.parametrize(
    ("of_round", "codes", "shown"),
    [
        ("not_run", (200, 200), "Not run"),
        ("open", (200, 500), "Waiting"),
        ("open", (200, 0), "Running"),
        ("started", (200, 500), "Failed"),
        (None, (500, 0), "Not started"),
    ],
)
def test_a_box_shows_the_run_under_way_else_the_round_else_the_last_run(
    admin: Console, of_round: str | None, codes: tuple[int, int], shown: str
) -> None:
    group_id = add_group()
    first = follow(group_id, "Load")
    second = follow(group_id, "Report", first)
    run(second, trigger_code=codes[0], handle_code=codes[1])
    if of_round:
        add_round(second, of_round)
    assert boxes_of(admin.get(f"/jobinfo/{first}/graph"))[1] == f"Report {second} {shown}"


def test_the_page_says_what_becomes_of_followers_of_a_job_that_does_not_run(admin: Console) -> None:
    group_id = add_group()
    load, check = follow(group_id, "Load"), follow(group_id, "Check")
    follow(group_id, "Alone after it", load)
    follow(group_id, "Both", load, check)
    follow(group_id, "Either", load, check, rule="any_succeeded")
    page = text_of(admin.get(f"/jobinfo/{load}/graph")).partition("If it does not run")[2]
    for words in (
        "Alone after it Does not run",
        "Both Waits 1 day, then does not run",
        "Either Runs all the same, after its other predecessors",
    ):
        assert words in page
    page = text_of(admin.get(f"/jobinfo/{check}/graph")).partition("If it does not run")[2]
    assert "Alone after it" not in page


def test_deleting_and_switching_off_name_the_followers(admin: Console) -> None:
    group_id = add_group()
    load = follow(group_id, "Load", schedule_type="CRON")
    report = follow(group_id, "Report", load)
    follow(group_id, "Mail", report)
    assert f"lose it as a predecessor: {report}" in text_of(admin.get(f"/jobinfo/{load}/delete"))
    for act in ("stop", "delete"):
        page = text_of(admin.get(f"/jobinfo/bulk/{act}?id={load}"))
        assert f"Other jobs run after these and may go without a run: {load}" in page
    assert "Other jobs run after" not in text_of(admin.get(f"/jobinfo/bulk/stop?id={report + 1}"))


def test_an_executor_is_drawn_without_jobs_that_stand_alone(admin: Console) -> None:
    group_id = add_group()
    page = admin.get(f"/jobgroup/{group_id}/graph")
    assert "No job follows another" in text_of(page)
    follow(group_id, "Alone")
    load = follow(group_id, "Load")
    follow(group_id, "Report", load)
    page = admin.get(f"/jobgroup/{group_id}/graph")
    assert boxes_of(page) == [f"Load {load} Never ran", f"Report {load + 1} Never ran"]
    assert "2 jobs" in text_of(page)
    assert "What follows what" in text_of(admin.get(f"/jobgroup/{group_id}"))


def test_too_many_jobs_are_drawn_as_connected_ones(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = add_group()
    load = follow(group_id, "Load")
    follow(group_id, "Report", load)
    import_id = follow(group_id, "Import")
    for number in range(3):
        follow(group_id, f"Part {number}", import_id)
    monkeypatch.setattr(group_page, "NODES_MAX", 5)
    monkeypatch.setattr(graph.graph_of_group, "__kwdefaults__", {"most": 5})
    page = admin.get(f"/jobgroup/{group_id}/graph")
    assert boxes_of(page) == [f"{import_id} Import 4 jobs", f"{load} Load 2 jobs"]
    assert "More than 5 jobs cannot be drawn at once." in text_of(page)
    assert f'href="/xxl-job-admin/jobinfo/{load}/graph"' in page.text


def test_jobs_of_other_groups_have_no_name_and_no_number(admin: Console, console: Console) -> None:
    mine, other = add_group(), add_group("other-app", "Other")
    for _number in range(3):
        follow(other, "padding")
    secret = follow(other, "secret job")
    own = follow(mine, "Own", secret)
    hidden = follow(other, "hidden job", own)
    add_user("eve", [mine], rights={mine: frozenset({Right.VIEW})})
    admin.post("/account/logout", {})
    eve = console.log_in("eve", PASSWORD)
    for path in (f"/jobinfo/{own}/graph", f"/jobgroup/{mine}/graph"):
        page = eve.get(path)
        assert boxes_of(page) == ["a job of another group", f"Own {own} Never ran", "a job of another group"]
        assert not re.search(rf"secret|hidden job|/jobinfo/({secret}|{hidden})\b", page.text)
    assert eve.get(f"/jobinfo/{secret}/graph").status_code == 404
    assert eve.get(f"/jobgroup/{other}/graph").status_code == 404


def test_a_refresh_sends_the_boxes_that_changed(admin: Console) -> None:
    group_id = add_group()
    load = follow(group_id, "Load")
    report = follow(group_id, "Report", load)
    path = f"/jobinfo/{load}/graph"
    hashes = "".join(re.findall(r'data-hash="([^"]+)"', admin.get(path).text))
    assert admin.get(path, headers={"X-Parts": hashes}).status_code == 204
    run(report, trigger_code=200, handle_code=200)
    answer = admin.get(path, headers={"X-Parts": hashes}).get_json()
    assert list(answer["parts"]) == [f"box{report}"]
