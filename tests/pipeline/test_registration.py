"""Registry: who may register, and the address lists made of it."""

from ipaddress import ip_network

import pytest

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.database.rows import bulk
from app.errors import Conflict, InvalidInput
from app.models.base import use_zone
from app.models.group import Group
from app.models.last_seen import LastSeen
from app.models.node import NODE_DEAD_MS, Node
from app.models.registry import Registration
from app.pipeline import registration
from app.pipeline.registration import APP_MAX, HEARD_AFTER_MS, OUTAGE_MS, TOTAL_MAX, check_registration
from app.store.executors import last_seen
from app.store.executors.registry import DEAD_AFTER_MS
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.protocol import RegistryRequest
from tests.pipeline.steps import run_concurrently
from tests.support.factories import FIRST, T0, all_rows, make_group, only_row, remove, save
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database

NETWORKS = (ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8"))
A, B, C = "http://10.0.0.9:9999/", "http://10.0.0.10:9999/", "http://10.0.0.1:9999"


def registry_request(address: str = A, app_name: str = "demo", group: str = "EXECUTOR") -> RegistryRequest:
    return RegistryRequest(group, app_name, address)


def register(
    address: str = A,
    app_name: str = "demo",
    *,
    now_ms: Millis = T0,
    capabilities: Capabilities | None = None,
    group: str = "EXECUTOR",
) -> None:
    request, announced = registry_request(address, app_name, group), capabilities or Capabilities()
    transact(lambda session: registration.register(session, request, announced, now_ms=now_ms))


def deregister(address: str = A, app_name: str = "demo", now_ms: Millis = T0) -> None:
    transact(
        lambda session: registration.deregister(session, registry_request(address, app_name), now_ms=now_ms)
    )


def tick(now_ms: Millis) -> None:
    transact(lambda session: registration.tick_registry(session, now_ms=now_ms))


def lists() -> dict[str, str | None]:
    return {group.title: group.address_list for group in all_rows(Group)}


def test_a_new_address_is_listed_at_once_in_order(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    make_group(app_name="demo", title="two", address_type=0, address_list="", update_time=None)
    make_group(app_name="demo", title="manual", address_type=1, address_list=FIRST)
    make_group(app_name="other", title="other", address_type=0, address_list=None)
    for address in (A, B, C):
        register(address, now_ms=T0 + 5000)
    text = f"{B},{C},{A}"  # as text: the original's order
    assert lists() == {"one": text, "two": text, "manual": FIRST, "other": None}
    assert [group.update_time for group in all_rows(Group)] == [T0 + 5000, T0 + 5000, T0, T0]


def test_a_removed_address_leaves_the_lists_at_once(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    register(A)
    register(B)
    deregister(A)
    assert lists() == {"one": B}
    deregister("http://10.9.9.9:1234/")
    deregister(B)
    assert lists() == {"one": None}


def test_a_heartbeat_only_updates_its_row(database: str) -> None:
    group = make_group(app_name="demo", address_type=0, address_list=None)
    register(A)
    register(A, now_ms=T0 + 30_000, capabilities=Capabilities(True, "boot-2"))
    row = only_row(Registration)
    assert (row.update_time, row.capabilities, row.boot_id) == (T0 + 30_000, "durable-dedup", "boot-2")
    assert only_row(Group, id=group.id).update_time == T0
    register(A, now_ms=T0 + 60_000)
    assert (only_row(Registration).capabilities, only_row(Registration).boot_id) == ("", ""), (
        "a foreign executor took the address"
    )


def test_an_address_is_kept_as_it_was_sent(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    for address in ("http://10.0.0.1:9999/job", "http://10.0.0.1:9999", "http://10.0.0.1:9999/"):
        register(address)
    assert lists() == {"one": "http://10.0.0.1:9999,http://10.0.0.1:9999/,http://10.0.0.1:9999/job"}


def test_other_registry_groups_are_stored_and_not_routed_to(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    register(A, group="ADMIN")
    assert lists() == {"one": None}
    assert only_row(Registration).registry_group == "ADMIN"


@pytest.mark.parametrize("group", ["OTHER", "executor"])
def test_an_unknown_registry_group_is_accepted_and_ignored(database: str, group: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    check_registration(registry_request(A, group=group), NETWORKS)
    register(A, group=group)
    assert lists() == {"one": None}
    assert all_rows(Registration) == []


def test_an_address_without_a_scheme_is_stored_and_not_routed_to(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    register("10.0.0.1:9999")
    assert (only_row(Registration).registry_value, lists()) == ("10.0.0.1:9999", {"one": None})
    register(A)
    assert lists() == {"one": A}
    deregister("10.0.0.1:9999")
    assert [row.registry_value for row in all_rows(Registration)] == [A]


def test_concurrent_first_registrations_make_one_row(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    run_concurrently(*(lambda: register(A) for _ in range(4)))
    assert only_row(Registration).registry_value == A
    assert lists() == {"one": A}


def test_concurrent_registrations_of_different_addresses_are_all_listed(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    addresses = [f"http://10.0.0.{number}:9999/" for number in range(10, 18)]
    run_concurrently(*(lambda address=address: register(address) for address in addresses))
    assert lists() == {"one": ",".join(sorted(addresses))}


@pytest.mark.parametrize(("silent_ms", "alive"), [(DEAD_AFTER_MS, True), (DEAD_AFTER_MS + 1000, False)])
def test_an_executor_is_dead_after_ninety_seconds(database: str, silent_ms: Millis, alive: bool) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    make_group(app_name="demo", title="manual", address_type=1, address_list=A)
    register(A)
    register(B, now_ms=T0 + silent_ms)
    tick(T0 + silent_ms)
    assert lists() == {"one": f"{B},{A}" if alive else B, "manual": A}
    assert len(all_rows(Registration)) == 1 + alive


def test_a_registered_address_without_a_time_is_dead(database: str) -> None:
    make_group(app_name="demo", title="one", address_type=0, address_list=A)
    save(Registration(registry_group="EXECUTOR", registry_key="demo", registry_value=A))
    register(B)
    tick(T0)
    assert lists() == {"one": B}
    assert (only_row(Registration).registry_value, last_seen_rows()) == (B, {})


def last_seen_rows() -> dict[str, tuple[Millis, str]]:
    return {row.address: (row.last_seen_ms, row.capabilities) for row in all_rows(LastSeen)}


def test_an_expired_or_removed_instance_leaves_a_last_seen_time(database: str) -> None:
    register(A, capabilities=Capabilities(True, "b"))
    register(B, now_ms=T0 + DEAD_AFTER_MS)
    register(C, group="ADMIN")
    tick(T0 + DEAD_AFTER_MS)
    assert last_seen_rows() == {}, "all are alive"
    tick(T0 + DEAD_AFTER_MS + 1000)
    assert last_seen_rows() == {A: (T0, "durable-dedup")}
    deregister("http://10.9.9.9:1234/")
    deregister(B, now_ms=T0 + DEAD_AFTER_MS + 7000)
    assert last_seen_rows() == {A: (T0, "durable-dedup"), B: (T0 + DEAD_AFTER_MS + 7000, "")}


def test_a_returning_instance_is_removed_from_last_seen(database: str) -> None:
    """A Java admin may take over its row next; an old time would be wrong then."""
    register(A)
    register(B)
    tick(T0 + DEAD_AFTER_MS + 1000)
    assert set(last_seen_rows()) == {A, B}
    back_ms = T0 + DEAD_AFTER_MS + 5000
    register(B, now_ms=back_ms)
    register(A, "other", now_ms=back_ms)
    tick(back_ms)
    assert set(last_seen_rows()) == {A}, "the same address of another application is another instance"
    remove(only_row(Registration, registry_key="demo"))
    tick(back_ms + DEAD_AFTER_MS + 1000)
    assert [(row.app_name, row.address) for row in all_rows(LastSeen)] == [("demo", A), ("other", A)]
    assert transact(lambda session: last_seen.find_last(session, ["demo"])) == {"demo": T0}


def test_heartbeats_and_quiet_rounds_do_not_write_last_seen(database: str) -> None:
    register(A)
    with statements() as executed:
        register(A, now_ms=T0 + 1000)
        register(B, now_ms=T0 + 1000)
        tick(T0 + 2000)
    assert not any(
        "xxl_job_last_seen" in statement for statement in executed if not statement.startswith("SELECT")
    )
    assert sum("xxl_job_last_seen" in statement for statement in executed) == 1, (
        "the round checks whether anything is stored"
    )


@pytest.mark.parametrize(
    ("kind", "heard_ms_ago", "beat_ms_ago", "listening"),
    [
        ("console", 0, None, True),
        ("console", NODE_DEAD_MS + 1, None, False),
        ("workers", 0, None, False),
        ("workers", 0, HEARD_AFTER_MS, True),
        ("workers", 0, HEARD_AFTER_MS + 1000, False),
    ],
    ids=["console", "console gone", "none", "another's console", "another's console gone"],
)
def test_which_nodes_count_as_listening(
    database: str, kind: str, heard_ms_ago: Millis, beat_ms_ago: Millis | None, listening: bool
) -> None:
    now_ms = T0 + 10 * DEAD_AFTER_MS
    save(Node(name="one", kind=kind, epoch=1, started_ms=T0, heartbeat_ms=now_ms - heard_ms_ago, version="1"))
    register(A, now_ms=T0 if beat_ms_ago is None else now_ms - beat_ms_ago)
    assert transact(lambda session: registration.is_listening(session, now_ms=now_ms)) is listening


def test_after_an_outage_a_change_of_one_address_does_not_remove_the_others(database: str) -> None:
    """Until their next heartbeats those are older than any limit, since none could arrive."""
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    register(A)
    register(B)
    after_ms = T0 + DEAD_AFTER_MS + 1_000
    register("http://10.9.9.9:1234/", now_ms=after_ms)
    assert lists() == {"one": ",".join(sorted((A, B, "http://10.9.9.9:1234/")))}
    deregister("http://10.9.9.9:1234/", now_ms=after_ms)
    deregister(B, now_ms=after_ms)
    assert lists() == {"one": A}
    register("http://10.9.9.9:1234/", now_ms=T0 + DEAD_AFTER_MS + OUTAGE_MS + 1_000)
    assert lists() == {"one": "http://10.9.9.9:1234/"}, "those of an adopted database are gone for good"


def test_the_monitor_writes_only_what_differs(database: str) -> None:
    register(A)
    right = make_group(app_name="demo", title="right", address_type=0, address_list=A)
    make_group(app_name="demo", title="wrong", address_type=0, address_list=B)
    make_group(app_name="gone", title="gone", address_type=0, address_list=B)
    tick(T0 + 1000)
    assert lists() == {"right": A, "wrong": A, "gone": None}
    assert only_row(Group, id=right.id).update_time == T0


@pytest.mark.parametrize("zone_hour", ["Europe/Berlin", "Australia/Lord_Howe", "America/New_York"])
def test_nothing_expires_when_the_clocks_are_set_back(database: str, zone_hour: str) -> None:
    """DATETIME columns hold local time.

    At the end of summer time the last minute before is "later" than the first one after.
    """
    ends = {
        "Europe/Berlin": 1_729_990_800_000,
        "Australia/Lord_Howe": 1_712_415_600_000,
        "America/New_York": 1_730_613_600_000,
    }
    use_zone(zone_hour)
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    for second in range(-120, 240, 30):
        at_ms = ends[zone_hour] + second * 1000
        register(A, now_ms=at_ms)
        tick(at_ms + 5000)
        tick(at_ms + 25_000)
        assert lists() == {"one": A}, second


def test_nothing_survives_because_the_clocks_are_set_forward(database: str) -> None:
    use_zone("Europe/Berlin")
    begins_ms = 1_711_846_800_000
    make_group(app_name="demo", title="one", address_type=0, address_list=None)
    register(A, now_ms=begins_ms - 60_000)
    tick(begins_ms + 20_000)
    assert lists() == {"one": A}
    tick(begins_ms + 40_000)
    assert lists() == {"one": None}


def fill(count: int, app_name: str) -> None:
    row = {
        "registry_group": "EXECUTOR",
        "registry_key": app_name,
        "capabilities": "",
        "boot_id": "",
        "update_time": T0,
    }
    with session_scope() as session:
        bulk.insert_many(
            session,
            Registration,
            [row | {"registry_value": f"http://10.1.{n // 250}.{n % 250}:9999/"} for n in range(count)],
        )


def test_addresses_per_application_are_limited(database: str) -> None:
    fill(APP_MAX, "demo")
    with pytest.raises(Conflict, match="demo has 200 addresses"):
        register(A)
    register(A, "other")
    register("http://10.1.0.1:9999/")  # heartbeats of known ones continue


def test_addresses_of_all_applications_are_limited(database: str) -> None:
    fill(TOTAL_MAX, "full")
    with pytest.raises(Conflict, match="5000 addresses"):
        register(A)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (registry_request(""), "Illegal Argument."),
        (registry_request("  "), "Illegal Argument."),
        (registry_request(A, " "), "Illegal Argument."),
        (registry_request(A, "demo", ""), "Illegal Argument."),
        (registry_request(A, "x" * 256), "longer than 255"),
        (registry_request("ftp://10.0.0.1:9999"), "must start with http"),
        (registry_request("javascript:alert(1)"), "refused"),
        (registry_request("8.8.8.8:9999"), "outside the networks"),
        (registry_request("http://8.8.8.8:9999/"), "outside the networks"),
        (registry_request("http://169.254.169.254/"), "outside the networks"),
        (registry_request("http://10.0.0.1:22/"), "port 22"),
    ],
)
def test_a_registration_that_can_never_be_used_is_refused(request_: RegistryRequest, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        check_registration(request_, NETWORKS)


@pytest.mark.parametrize(
    "request_",
    [
        registry_request(),
        registry_request(A, "x" * 255),
        registry_request(A, "行 app"),
        registry_request(A, group="ADMIN"),
        registry_request("http://a-name:8080/x"),
        registry_request("10.0.0.1:9999"),
    ],
)
def test_any_other_registration_is_accepted(request_: RegistryRequest) -> None:
    check_registration(request_, NETWORKS)
