"""Last seen times of former instances: list, page, dialogs, dashboard and trace of a run."""

import re
from collections.abc import Callable

import pytest

from app.clock import DAY_MS, MINUTE_MS, Millis, now_ms
from app.database.engine import transact
from app.models.group import Group
from app.models.last_seen import LastSeen
from app.models.log import JobLog
from app.models.registry import Registration
from app.pipeline import registration
from app.services.executors.instances import LAST_SEEN_DAYS
from executor_client.wire.protocol import RegistryRequest
from tests.console.pages import path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import all_rows, make_fire, make_group, make_job, make_log, save

#: independent of the database; what is stored is tested in tests/store and tests/pipeline
pytestmark = pytest.mark.databases("sqlite")
HOUR_MS: Millis = 60 * MINUTE_MS
GONE, OTHER, HERE = "http://127.0.0.1:9991", "http://127.0.0.1:9992", "http://127.0.0.1:9993"
FORM = {
    "app_name": "orders-app",
    "title": "Orders",
    "address_type": "0",
    "address_list": "",
    "access_token": "",
    "alarm_urls": "",
}


@pytest.fixture
def orders() -> Group:
    """An automatic group whose last instance left three hours ago."""
    group = make_group(app_name="orders-app", title="Orders", address_type=0, address_list=None)
    gone(GONE, 3 * HOUR_MS, capabilities="durable-dedup")
    return group


def gone(address: str, ago_ms: Millis, app_name: str = "orders-app", capabilities: str = "") -> LastSeen:
    return save(
        LastSeen(
            app_name=app_name, address=address, last_seen_ms=now_ms() - ago_ms, capabilities=capabilities
        )
    )


def registered(address: str, ago_ms: Millis = 0, app_name: str = "orders-app") -> Registration:
    return save(
        Registration(
            registry_group="EXECUTOR",
            registry_key=app_name,
            registry_value=address,
            update_time=now_ms() - ago_ms,
        )
    )


def test_the_list_shows_since_when_a_group_is_offline(admin: Console, orders: Group) -> None:
    save(Group(app_name="never-app", title="Never", address_type=0))
    page = admin.get("/jobgroup?appname=orders")
    assert "Offline 3 hours ago" in text_of(page)
    assert re.search(
        r'<time datetime="[^"]+" title="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [^>]+>3 hours ago', page.text
    ), "the full time on hover"
    never = text_of(admin.get("/jobgroup?appname=never"))
    assert "Offline" in never
    assert "ago" not in never


def test_a_registered_instance_hides_its_last_seen_time(admin: Console, orders: Group) -> None:
    registered(f"{GONE}/", app_name="orders-app")
    transact(lambda session: registration.refresh_addresses(session, now_ms=now_ms()))
    assert "3 hours ago" not in text_of(admin.get("/jobgroup?appname=orders"))
    page = text_of(admin.get(f"/jobgroup/{orders.id}"))
    assert "No longer registered" not in page, "another spelling of the address is the same instance"
    assert "Online" in page


def test_the_page_and_the_dialogs_list_instances_that_are_gone(admin: Console, orders: Group) -> None:
    gone(OTHER, 2 * DAY_MS)
    gone(f"{GONE}/", 5 * DAY_MS)
    gone("http://127.0.0.1:9994", LAST_SEEN_DAYS * DAY_MS + MINUTE_MS)
    gone(HERE, HOUR_MS, "other-app")
    job = make_job(job_group=orders.id)
    for path in (f"/jobgroup/{orders.id}", f"/jobgroup/{orders.id}/nodes", f"/jobinfo/{job.id}/nodes"):
        page = text_of(admin.get(path))
        assert "No instance is online" in page, path
        assert f"{GONE} 3 hours ago starts no run twice {OTHER} 2 days ago unknown" in page
        gone_part = page.partition("No longer registered")[2]
        assert gone_part.count("http://") == 2, "one spelling each, recent ones, of this application"
    assert submit(admin, f"/jobgroup/{orders.id}/drain", address=GONE).status_code == 400, (
        "it is not an instance of the group"
    )


def test_listed_and_busy_instances_show_their_last_seen_time(admin: Console, orders: Group) -> None:
    manual = make_group(app_name="manual-app", title="Manual", address_type=1, address_list=f"{HERE},{OTHER}")
    gone(HERE, 3 * HOUR_MS, "manual-app")
    page = text_of(admin.get(f"/jobgroup/{manual.id}"))
    assert f"{HERE} heartbeat 3 hours ago Not known" in page
    assert f"{OTHER} entered by hand, no heartbeat Not known" in page
    assert "No longer registered" not in page
    make_fire(make_job(job_group=orders.id), state="ACCEPTED", address=GONE)
    page = text_of(admin.get(f"/jobgroup/{orders.id}"))
    assert f"{GONE} heartbeat 3 hours ago · starts no run twice Offline 1 0 0 0 – none" in page
    assert "No answer" not in text_of(submit(admin, f"/jobgroup/{orders.id}/test")), (
        "instances that are gone are not called"
    )


def test_the_dashboard_shows_since_when_executors_are_gone(
    admin: Console, orders: Group, normal_user: Callable[..., Console]
) -> None:
    other = add_group("other-app", "Other", addresses=HERE)
    norman, stranger = normal_user(orders.id), normal_user(other, username="stan")
    for console in (admin, norman):
        assert "Orders No instance is online for 3 hours" in text_of(console.get("/"))
    assert "No instance is online" not in text_of(stranger.get("/"))
    assert stranger.get(f"/jobgroup/{orders.id}").status_code == 404


def test_without_a_last_seen_time_none_is_shown(admin: Console) -> None:
    """A Java admin on the same database removes registrations itself."""
    group = make_group(app_name="orders-app", title="Orders", address_type=0, address_list=None)
    job_id = add_job(group.id)
    for path in ("/", "/jobgroup", f"/jobgroup/{group.id}", f"/jobinfo/{job_id}/nodes"):
        page = admin.get(path)
        assert page.status_code == 200
        assert "last seen" not in text_of(page)
        assert "No longer registered" not in text_of(page)


def test_an_instance_that_disappears_is_listed_as_gone(admin: Console, orders: Group) -> None:
    registered(HERE, ago_ms=10 * MINUTE_MS)
    registered(OTHER)
    transact(lambda session: registration.tick_registry(session, now_ms=now_ms()))
    transact(
        lambda session: registration.deregister(
            session, RegistryRequest("EXECUTOR", "orders-app", OTHER), now_ms=now_ms()
        )
    )
    page = text_of(admin.get(f"/jobgroup/{orders.id}"))
    assert re.search(rf"{OTHER} (just now|\d seconds? ago) unknown {HERE} 10 minutes ago", page)


def test_removing_a_group_removes_last_seen_times_unless_the_name_is_shared(
    admin: Console, orders: Group
) -> None:
    twin = make_group(app_name="orders-app", title="Twin", address_type=0, address_list=None)
    add_group("spare-app", "Spare")
    path_after(submit(admin, f"/jobgroup/{twin.id}/delete"))
    assert [row.address for row in all_rows(LastSeen)] == [GONE]
    path_after(submit(admin, f"/jobgroup/{orders.id}/edit", **(FORM | {"app_name": "renamed-app"})))
    assert "No longer registered" not in text_of(admin.get(f"/jobgroup/{orders.id}")), (
        "they belong to the other name"
    )
    path_after(submit(admin, f"/jobgroup/{orders.id}/edit", **FORM))
    assert "No longer registered" in text_of(admin.get(f"/jobgroup/{orders.id}"))
    path_after(submit(admin, f"/jobgroup/{orders.id}/delete"))
    assert all_rows(LastSeen) == []


def test_an_address_with_markup_is_escaped(admin: Console, orders: Group) -> None:
    gone("http://<b>127.0.0.1</b>", HOUR_MS, capabilities="<i>x</i>")
    for path in (f"/jobgroup/{orders.id}", f"/jobgroup/{orders.id}/nodes"):
        page = admin.get(path).text
        assert "http://&lt;b&gt;127.0.0.1" in page
        assert "<i>x</i>" not in page


def test_the_trace_of_a_run_is_translated(admin: Console, orders: Group) -> None:
    trace = (
        "Result: not sent, no executor of orders-app is registered;"
        " the last one was seen 2024-05-01 10:04:05.000 +0800"
    )
    log: JobLog = make_log(make_job(job_group=orders.id), trigger_code=500, trigger_msg=trace)
    assert "no executor of orders-app is registered; the last one was seen 2024-05-01" in text_of(
        admin.get(f"/joblog/{log.id}")
    )
    submit(admin, "/account/settings", language="zh_CN", time_zone="Asia/Shanghai")
    assert "最近一次在线时间为 2024-05-01" in text_of(admin.get(f"/joblog/{log.id}"))
