"""Page of an executor group: its instances, and draining them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.clock import now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.drain import Drain
from app.models.group import Group
from app.models.registry import Registration
from app.services.executors import drains, groups
from app.settings.config import Config
from tests.console.pages import is_at_login, path_after, submit, text_of, unnamed_path_after
from tests.support.console import ACTOR, Console, add_group, add_job
from tests.support.factories import all_rows, make_fire, make_job, save

FIRST, SECOND, GONE = "http://127.0.0.1:9991", "http://127.0.0.1:9992", "http://127.0.0.1:9993"


def drain(group_id: int, *addresses: str) -> None:
    with session_scope() as session:
        for address in addresses:
            drains.drain(session, group_id, address, actor=ACTOR, now_ms=now_ms())


def beat(app_name: str, address: str, ago_ms: int = 0, **more: Any) -> None:
    row = {
        "registry_group": "EXECUTOR",
        "registry_key": app_name,
        "registry_value": address,
        "update_time": now_ms() - ago_ms,
    }
    save(Registration(**row, **more))


def rows_of(console: Console, group_id: int) -> dict[str, str]:
    """Return address -> the text of its row."""
    page = console.get(f"/jobgroup/{group_id}").text
    rows = page.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:] if "<tbody>" in page else []
    texts = [text_of(Text(row)) for row in rows]  # type: ignore[arg-type]
    return {text.split()[0]: text for text in texts}


class Text:
    """Part of a page, for ``text_of``."""

    def __init__(self, text: str) -> None:
        self.text = text


def audited(action: str) -> list[AuditEntry]:
    return [entry for entry in all_rows(AuditEntry) if entry.action == action]


def test_without_a_login_the_page_leads_to_the_login(console: Console) -> None:
    group_id = add_group()
    for path in (f"/jobgroup/{group_id}", f"/jobgroup/{group_id}/drain?address={FIRST}"):
        assert is_at_login(console.get(path))
    for path in (f"/jobgroup/{group_id}/drain", f"/jobgroup/{group_id}/undrain"):
        assert is_at_login(console.post(path, {"address": FIRST}))


def test_a_missing_group_is_not_found(admin: Console) -> None:
    assert admin.get("/jobgroup/2147483647").status_code == 404
    assert submit(admin, "/jobgroup/2147483647/drain", address=FIRST).status_code == 404
    assert submit(admin, "/jobgroup/2147483647/undrain", address=FIRST).status_code == 404


def test_viewers_see_the_instances_and_operators_drain_them(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own_group, other_group = (
        add_group(addresses=f"{FIRST},{SECOND}"),
        add_group("other-app", "Other", addresses=GONE),
    )
    viewer = normal_user(own_group, username="vera", rights={own_group: frozenset({Right.VIEW})})
    operator = normal_user(
        own_group, username="otto", rights={own_group: frozenset({Right.VIEW, Right.OPERATE})}
    )
    for norman in (viewer, operator):
        assert norman.get(f"/jobgroup/{own_group}").status_code == 200
        assert norman.get(f"/jobgroup/{other_group}").status_code == 404
        assert submit(norman, f"/jobgroup/{other_group}/drain", address=GONE).status_code in (403, 404)
        assert "Test connection" not in norman.get(f"/jobgroup/{own_group}").text
    assert "Undrain" not in viewer.get(f"/jobgroup/{own_group}").text
    assert "/drain?" not in viewer.get(f"/jobgroup/{own_group}").text
    assert viewer.get(f"/jobgroup/{own_group}/drain?address={FIRST}").status_code == 403
    assert submit(viewer, f"/jobgroup/{own_group}/drain", address=FIRST).status_code == 403
    assert all_rows(Drain) == []
    assert (
        unnamed_path_after(submit(operator, f"/jobgroup/{own_group}/drain", address=FIRST))
        == f"/jobgroup/{own_group}?done=drained"
    )
    assert [row.username for row in all_rows(Drain)] == ["otto"]
    assert submit(viewer, f"/jobgroup/{own_group}/undrain", address=FIRST).status_code == 403
    assert len(all_rows(Drain)) == 1
    assert (
        unnamed_path_after(submit(operator, f"/jobgroup/{own_group}/undrain", address=FIRST))
        == f"/jobgroup/{own_group}?done=undrained"
    )
    assert all_rows(Drain) == []


def test_an_unusable_address_is_shown_with_the_reason(admin: Console) -> None:
    group_id = add_group("sample-app")
    beat("sample-app", "127.0.0.1:9999")
    row = rows_of(admin, group_id)["127.0.0.1:9999"]
    assert "Unusable it must start with http:// or https://" in row
    assert row.rstrip().endswith("none"), "no run is sent there"
    assert "unusable address" not in text_of(admin.get(f"/jobgroup/{group_id}"))
    assert "Unusable" in text_of(admin.get(f"/jobgroup/{group_id}/nodes"))

    adopted = add_group("adopted-app", "Adopted", addresses=FIRST)
    with session_scope() as session:
        session.get_one(Group, adopted).address_list = f"{FIRST},http://8.8.8.8:9999/,http://127.0.0.1:81/"
    rows = rows_of(admin, adopted)
    assert "Unusable" not in rows[FIRST]
    assert "Unusable it is outside the networks of XXL_JOB_EXECUTOR_NETWORKS" in rows["http://8.8.8.8:9999/"]
    assert "Unusable port 81 is not allowed" in rows["http://127.0.0.1:81/"]
    page = text_of(admin.get(f"/jobgroup/{adopted}"))
    assert "Runs routed to an unusable address fail." in page
    assert "XXL_JOB_EXECUTOR_NETWORKS" in page


def test_a_right_on_another_group_does_not_count(admin: Console, normal_user: Callable[..., Console]) -> None:
    """The endpoint needs the right on any group; the group in question is checked by the service."""
    own_group, visible = add_group(addresses=FIRST), add_group("other-app", "Other", addresses=SECOND)
    norman = normal_user(own_group, visible, rights={visible: frozenset({Right.VIEW})})
    assert submit(norman, f"/jobgroup/{visible}/drain", address=SECOND).status_code == 403
    assert submit(norman, f"/jobgroup/{visible}/undrain", address=SECOND).status_code == 403
    assert all_rows(Drain) == []


def test_draining_needs_the_csrf_token(admin: Console) -> None:
    group_id = add_group(addresses=FIRST)
    for action in ("drain", "undrain"):
        assert admin.post(f"/jobgroup/{group_id}/{action}", {"address": FIRST}).status_code == 403
        assert (
            submit(admin, f"/jobgroup/{group_id}/{action}", csrf_token="0" * 64, address=FIRST).status_code
            == 403
        )
    assert all_rows(Drain) == []
    assert admin.get(f"/jobgroup/{group_id}/undrain").status_code == 405


def test_the_confirmation_names_the_consequences(admin: Console) -> None:
    group_id = add_group(addresses=f"{FIRST},{SECOND}")
    job = make_job(job_group=group_id)
    make_fire(job, state="ACCEPTED", address=FIRST)
    page = text_of(admin.get(f"/jobgroup/{group_id}/drain?address={FIRST}"))
    assert "Drain this instance?" in page
    assert "Current runs: 1." in page
    assert "Broadcasts go to the other instances" in page
    drain(group_id, FIRST)
    assert "It is the last instance that accepts new runs" in text_of(
        admin.get(f"/jobgroup/{group_id}/drain?address={SECOND}")
    )


def test_two_spellings_of_an_address_count_as_one(admin: Console) -> None:
    group_id = add_group(addresses=f"{FIRST},{FIRST}/")
    assert "It is the last instance that accepts new runs" in text_of(
        admin.get(f"/jobgroup/{group_id}/drain?address={FIRST}")
    )


def test_undraining_an_address_that_cannot_be_stored_changes_nothing(admin: Console) -> None:
    group_id = add_group(addresses=FIRST)
    drain(group_id, FIRST)
    assert (
        unnamed_path_after(submit(admin, f"/jobgroup/{group_id}/undrain", address=f"{FIRST}\x00"))
        == f"/jobgroup/{group_id}?done=undrained"
    )
    assert len(all_rows(Drain)) == 1


def test_an_address_the_group_does_not_have_is_refused_by_name(admin: Console) -> None:
    group_id = add_group(addresses=FIRST)
    for answer in (
        admin.get(f"/jobgroup/{group_id}/drain?address={GONE}"),
        submit(admin, f"/jobgroup/{group_id}/drain", address=GONE),
    ):
        assert answer.status_code in (400, 404)
        assert f"{GONE} is not an instance of this executor group" in text_of(answer)
    escaped = submit(admin, f"/jobgroup/{group_id}/drain", address="<script>alert(1)</script>")
    assert "<script>alert(1)" not in escaped.text
    assert all_rows(Drain) == []


def test_draining_and_undraining_are_audited_once(admin: Console) -> None:
    group_id = add_group(addresses=FIRST)
    for _ in range(2):
        submit(admin, f"/jobgroup/{group_id}/drain", address=f"{FIRST}/")
    (entry,) = audited("group.drain")
    assert (entry.object_type, entry.object_id, entry.username, FIRST in (entry.changes or "")) == (
        "group",
        group_id,
        "admin",
        True,
    )
    for _ in range(2):
        submit(admin, f"/jobgroup/{group_id}/undrain", address=FIRST)
    assert len(audited("group.undrain")) == 1


def test_the_rows_show_state_and_load(admin: Console) -> None:
    with session_scope() as session:
        draft = groups.GroupDraft(app_name="auto-app", title="Auto")
        group_id = groups.add_group(session, draft, actor=ACTOR, now_ms=now_ms())
        group = session.get(Group, group_id)
        assert group is not None
        group.address_list = f"{FIRST},{SECOND}"
    beat("auto-app", FIRST, capabilities="durable-dedup", boot_id="b")
    beat("auto-app", SECOND, ago_ms=60_000)
    job = make_job(job_group=group_id)
    for state, address in (
        ("ACCEPTED", FIRST),
        ("ACCEPTED", FIRST),
        ("SENDING", FIRST),
        ("PENDING", SECOND),
        ("ACCEPTED", GONE),
    ):
        make_fire(job, state=state, address=address)
    make_fire(job, state="ROUTING")
    make_fire(job, due_time=now_ms() + 4_000)
    rows = rows_of(admin, group_id)
    assert "Online" in rows[FIRST]
    assert "starts no run twice Online 1 2 0 0 – accepts new runs" in rows[FIRST], (
        "one run, two more of the same job are queued there"
    )
    assert "Not responding" in rows[SECOND]
    assert "Not responding 0 1 0 0 – accepts new runs" in rows[SECOND]
    assert "Offline" in rows[GONE]
    assert "Offline 1 0 0 0 – none" in rows[GONE], "it still has a run"
    page = text_of(admin.get(f"/jobgroup/{group_id}"))
    assert "1 due run has no instance yet." in page
    assert "automatic 1 not responding 1 online" in page


def test_a_manual_address_without_heartbeat_has_its_own_state(admin: Console) -> None:
    group_id = add_group(addresses=FIRST)
    beat("sample-app", SECOND)
    rows = rows_of(admin, group_id)
    assert "entered by hand, no heartbeat Not known" in rows[FIRST]
    assert "not in the address list" in rows[SECOND]


def test_a_drained_instance_that_has_disappeared_can_be_removed(admin: Console) -> None:
    group_id = add_group(addresses=f"{FIRST},{SECOND}")
    drain(group_id, FIRST)
    form = {
        "app_name": "sample-app",
        "title": "Sample",
        "address_type": "1",
        "address_list": SECOND,
        "access_token": "",
        "alarm_urls": "",
    }
    path_after(submit(admin, f"/jobgroup/{group_id}/edit", **form))
    row = rows_of(admin, group_id)[FIRST]
    assert "Offline" in row
    assert "drained" in row
    assert "Undrain" in row
    path_after(submit(admin, f"/jobgroup/{group_id}/undrain", address=FIRST))
    assert list(rows_of(admin, group_id)) == [SECOND]


def test_two_spellings_are_one_instance(admin: Console) -> None:
    group_id = add_group(addresses=f"{FIRST}/,{SECOND}")
    drain(group_id, FIRST)
    rows = rows_of(admin, group_id)
    assert sorted(rows) == [f"{FIRST}/", SECOND]
    assert "drained" in rows[f"{FIRST}/"]


def test_removing_a_group_removes_its_drains(admin: Console) -> None:
    add_group("spare-app", "Spare")
    group_id = add_group(addresses=FIRST)
    drain(group_id, FIRST)
    path_after(submit(admin, f"/jobgroup/{group_id}/delete"))
    assert all_rows(Drain) == []


def test_drained_instances_are_marked_in_lists_and_dialogs(admin: Console) -> None:
    group_id = add_group(addresses=f"{FIRST},{SECOND}")
    job_id = add_job(group_id)
    assert "drained" not in admin.get("/jobgroup").text + admin.get(f"/jobinfo/{job_id}/nodes").text
    assert "Drained" not in admin.get(f"/jobinfo/{job_id}/run").text
    drain(group_id, FIRST)
    assert "1 drained" in text_of(admin.get("/jobgroup"))
    nodes = text_of(admin.get(f"/jobinfo/{job_id}/nodes"))
    assert f"{FIRST} drained" in nodes
    assert f"{SECOND} drained" not in nodes
    assert f"/jobgroup/{group_id}" in admin.get(f"/jobinfo/{job_id}/nodes").text
    run = text_of(admin.get(f"/jobinfo/{job_id}/run"))
    assert f"Drained, receive no runs: {FIRST}." in run


def test_the_dashboard_lists_fully_drained_groups(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group(addresses=f"{FIRST},{SECOND}")
    norman = normal_user(group_id)
    stranger = normal_user(add_group("other-app", "Other", addresses=GONE), username="stan")
    drain(group_id, FIRST)
    assert "all instances are drained" not in admin.get("/").text
    drain(group_id, SECOND)
    for console in (admin, norman):
        page = text_of(console.get("/"))
        assert "1 executor is drained" in page
        assert "all instances are drained" in page
        assert "Nothing is wrong." not in page
    assert "all instances are drained" not in stranger.get("/").text
    assert "All instances are drained." in text_of(admin.get(f"/jobgroup/{group_id}"))


def test_the_originals_endpoints_list_all_addresses(admin: Console) -> None:
    group_id = add_group(addresses=f"{FIRST},{SECOND}")
    before = admin.call("/jobgroup/pageList"), admin.call("/jobgroup/loadById", id=group_id)
    drain(group_id, FIRST)
    assert (admin.call("/jobgroup/pageList"), admin.call("/jobgroup/loadById", id=group_id)) == before
    assert before[1]["content"]["registryList"] == [FIRST, SECOND]


class TestSharedWithJava:
    """A console with a Java admin on the same database, which ignores drained instances."""

    @pytest.fixture
    def settings(self, settings: Config) -> Config:
        return replace(settings, shared_with_java=True)

    def test_the_page_says_that_the_java_admin_ignores_drains(self, admin: Console) -> None:
        group_id = add_group(addresses=FIRST)
        assert "A Java admin" not in admin.get(f"/jobgroup/{group_id}").text
        drain(group_id, FIRST)
        assert "A Java admin on the same database ignores drained instances" in text_of(
            admin.get(f"/jobgroup/{group_id}")
        )
