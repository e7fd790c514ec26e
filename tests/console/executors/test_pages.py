"""Pages of executor groups, and the dashboard and tutorial that show them."""

from collections.abc import Callable

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope
from app.models.audit import AuditEntry
from app.models.base import local_datetime
from app.models.group import Group
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.report import DayReport
from app.pipeline.registration import OUTAGE_MS
from app.services.report.reporting import Reporter
from app.settings.config import Config
from tests.console.pages import is_at_login, path_after, submit, text_of, unnamed_path_after
from tests.support.console import Console, add_group, add_job
from tests.support.console_executors import registered
from tests.support.factories import all_rows, make_group, only_row, remove, save

PAGES = (
    "/jobgroup",
    "/jobgroup/new",
    "/jobgroup/1/edit",
    "/jobgroup/1/delete",
    "/jobgroup/1/nodes",
    "/jobgroup/1/former-token/end",
)
FORM = {
    "app_name": "billing-app",
    "title": "Billing",
    "address_type": "0",
    "address_list": "",
    "access_token": "",
    "alarm_urls": "",
}


def group_of(group_id: int) -> Group:
    with read_scope() as session:
        group = session.get(Group, group_id)
        assert group is not None
        return group


def group_named(app_name: str) -> Group:
    with read_scope() as session:
        return session.query(Group).filter_by(app_name=app_name).one()


def test_without_a_login_every_page_redirects_to_the_login(console: Console) -> None:
    for path in ("/", "/report", "/help", *PAGES):
        assert is_at_login(console.get(path)), path


def test_groups_are_for_administrators(admin: Console, normal_user: Callable[..., Console]) -> None:
    norman = normal_user(add_group())
    assert {norman.get(path).status_code for path in PAGES} == {403}
    assert text_of(norman.get(PAGES[0])).lower().count("permission denied") == 2, "title and heading"
    assert submit(norman, "/jobgroup/new", **FORM).status_code == 403
    assert '/jobgroup"' not in norman.get("/").text


def test_a_group_is_added_and_listed(admin: Console) -> None:
    registered("billing-app", "http://127.0.0.1:9999/")
    group_page = unnamed_path_after(submit(admin, "/jobgroup/new", **FORM))
    assert group_page == f"/jobgroup/{group_named('billing-app').id}?done=added"
    assert "Add a job for it" in text_of(admin.get(group_page))
    assert group_named("billing-app").addresses == ["http://127.0.0.1:9999/"]
    page = admin.get("/jobgroup?appname=bill")
    assert "1 online" in page.text
    assert '<form class="filters list-search"' in page.text
    assert "just now" in page.text or "second" in page.text
    assert "http://127.0.0.1:9999/" in admin.get(f"/jobgroup/{group_named('billing-app').id}/nodes").text


def test_an_edit_keeps_the_instances_whose_heartbeats_an_outage_kept_away(admin: Console) -> None:
    registered("billing-app", "http://127.0.0.1:9999/")
    path_after(submit(admin, "/jobgroup/new", **FORM))
    remove(only_row(Registration))
    registered("billing-app", "http://127.0.0.1:9999/", ago_ms=OUTAGE_MS)
    group_id = group_named("billing-app").id
    path_after(submit(admin, f"/jobgroup/{group_id}/edit", **{**FORM, "title": "Bills"}))
    assert group_of(group_id).addresses == ["http://127.0.0.1:9999/"]
    path_after(submit(admin, f"/jobgroup/{group_id}/edit", **{**FORM, "app_name": "another-app"}))
    assert group_of(group_id).addresses == []


def test_errors_are_shown_at_their_field(admin: Console) -> None:
    cases = {
        "app_name": {"app_name": "ab"},
        "title": {"title": " "},
        "address_list": {"address_type": "1", "address_list": "http://169.254.169.254/"},
    }
    for field, changes in cases.items():
        page = submit(admin, "/jobgroup/new", **{**FORM, **changes})
        assert page.status_code == 400
        assert f'id="{field}-error"' in page.text, field


def test_a_token_is_hidden_kept_and_removed(admin: Console) -> None:
    path_after(submit(admin, "/jobgroup/new", **{**FORM, "access_token": "a-long-secret-token"}))
    group_id = group_named("billing-app").id
    assert "a-long-secret-token" not in admin.get(f"/jobgroup/{group_id}/edit").text
    path_after(submit(admin, f"/jobgroup/{group_id}/edit", **{**FORM, "title": "Bills"}))
    assert (group_of(group_id).title, group_of(group_id).access_token) == ("Bills", "a-long-secret-token")
    path_after(submit(admin, f"/jobgroup/{group_id}/edit", **FORM, drop_token="y"))
    assert group_of(group_id).access_token is None


def test_a_replaced_token_stays_valid_until_the_changeover_is_ended(admin: Console) -> None:
    first, second, third = (f"the-{number}-secret-token" for number in ("first", "second", "third"))
    path_after(submit(admin, "/jobgroup/new", **{**FORM, "access_token": first}))
    group_id = group_named("billing-app").id
    edit, end = f"/jobgroup/{group_id}/edit", f"/jobgroup/{group_id}/former-token/end"

    def enter(token: str) -> int:
        return submit(admin, edit, **{**FORM, "access_token": token}).status_code

    assert "being replaced" not in text_of(admin.get(f"/jobgroup/{group_id}"))
    assert submit(admin, end).status_code == 409
    assert enter(first) == 303
    assert group_of(group_id).tokens == (first,)
    assert enter(second) == 303
    assert group_of(group_id).tokens == (second, first)
    assert "being replaced" in text_of(admin.get(f"/jobgroup/{group_id}"))
    refused = submit(admin, edit, **{**FORM, "access_token": third})
    assert refused.status_code == 400
    assert third not in refused.text, "not even the one just entered"
    assert enter(first) == 303
    assert group_of(group_id).tokens == (first, second), "taken back"
    assert "former token are refused" in text_of(admin.get(end))
    assert unnamed_path_after(submit(admin, end)) == f"/jobgroup/{group_id}?done=changed_over"
    assert group_of(group_id).tokens == (first,)
    assert group_of(group_id).changeover_ms == 0
    entry = all_rows(AuditEntry, action="group.token")[0]
    assert (entry.object_id, "***" in (entry.changes or "")) == (group_id, True)
    written = "".join(entry.changes or "" for entry in all_rows(AuditEntry))
    assert not [token for token in (first, second, third) if token in written]


def test_removing_a_token_ends_the_changeover(admin: Console) -> None:
    group = make_group(app_name="billing-app", access_token="a-long-secret-token", former_token="x" * 20)
    path_after(submit(admin, f"/jobgroup/{group.id}/edit", **FORM, drop_token="y"))
    assert group_of(group.id).tokens == ()
    assert group_of(group.id).former_token is None


def test_a_group_with_jobs_cannot_be_removed(admin: Console) -> None:
    group_id, spare = add_group(), add_group("spare-app", "Spare")
    add_job(group_id)
    page = admin.get(f"/jobgroup/{group_id}/delete")
    assert "It still has jobs (1)." in text_of(page)
    assert "btn-danger" not in page.text
    assert f'href="/xxl-job-admin/jobinfo?jobGroup={group_id}"' in page.text
    assert "btn-danger" in admin.get(f"/jobgroup/{spare}/delete").text
    assert submit(admin, f"/jobgroup/{group_id}/delete").status_code == 409
    assert unnamed_path_after(submit(admin, f"/jobgroup/{spare}/delete")) == "/jobgroup?done=removed"


def test_instances_without_a_group_offer_to_create_it(admin: Console) -> None:
    registered("newcomer-app", "http://127.0.0.1:9999/")
    registered("gone-app", "http://127.0.0.1:9998/", ago_ms=DAY_MS)
    page = admin.get("/jobgroup").text
    assert "newcomer-app, which has no executor group" in page
    assert "gone-app" not in page
    assert 'value="newcomer-app"' in admin.get("/jobgroup/new?appname=newcomer-app").text


def test_the_dashboard_counts_only_visible_groups(
    admin: Console, normal_user: Callable[..., Console], settings: Config
) -> None:
    own_group, other_group = (
        add_group(addresses="http://127.0.0.1:9999"),
        add_group("other-app", "Other", addresses="http://127.0.0.1:9998"),
    )
    job_id = add_job(own_group, job_desc="my job", start=True)
    for number in range(3):
        add_job(other_group, job_desc=f"their job {number}", start=True)
    at_ms = now_ms() // 1000 * 1000
    for group_id, code in ((own_group, 500), (own_group, 200), (other_group, 500)):
        save(
            JobLog(
                job_group=group_id,
                job_id=job_id,
                trigger_time=at_ms,
                trigger_code=200,
                handle_time=at_ms,
                handle_code=code,
            )
        )
    norman = normal_user(own_group)
    Reporter(settings).tick(at_ms)
    page = norman.get("/")
    assert "their job" not in page.text
    assert "my job" in page.text
    days = norman.get("/report").get_json()["days"]
    assert len(days) == 7
    assert days[-1] == {
        "day": local_datetime(at_ms).strftime("%Y-%m-%d"),
        "success": 1,
        "failed": 1,
        "running": 0,
    }
    assert not any(day["success"] + day["failed"] for day in days[:-1])


def test_the_chart_of_an_administrator_shows_the_summary(admin: Console) -> None:
    midnight = local_datetime(now_ms()).replace(hour=0, minute=0, second=0)
    since_ms = int((local_datetime(now_ms()) - midnight).total_seconds()) * 1000
    save(
        DayReport(trigger_day=now_ms() // 1000 * 1000 - since_ms, suc_count=7, fail_count=2, running_count=1)
    )
    assert [day["success"] for day in admin.get("/report").get_json()["days"]] == [0, 0, 0, 0, 0, 0, 7]
    assert [day["success"] for day in admin.get("/report?range=yesterday").get_json()["days"]] == [0]
    assert "10" in text_of(admin.get("/"))


def test_the_dashboard_warns_without_a_scheduler(admin: Console) -> None:
    assert "No scheduler is running." in admin.get("/").text


def test_a_user_without_groups_sees_a_hint(admin: Console, normal_user: Callable[..., Console]) -> None:
    norman = normal_user()
    assert "You have no access to any executor group" in norman.get("/").text
    assert "You have no access to any executor group" in norman.get("/jobinfo").text
