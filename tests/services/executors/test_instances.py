"""Instances: found for many groups at once, each with its own load, drain and program."""

import pytest
from sqlalchemy.orm import Session

from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.errors import InvalidInput, NotFound, PermissionDenied
from app.models.group import Group
from app.models.registry import Registration
from app.services.executors import drains
from app.services.executors.instances import Presence, find_of_groups
from tests.support.factories import FIRST, SECOND, T0, make_group, make_job, make_run, save
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("test")


def make_registered(app_name: str, address: str, boot_id: str = "") -> Group:
    row = {"registry_group": "EXECUTOR", "registry_key": app_name, "registry_value": address}
    save(Registration(**row, boot_id=boot_id, update_time=T0))
    return make_group(app_name=app_name, address_type=0, address_list=address)


@every_database
def test_each_group_gets_its_own_instances(session: Session) -> None:
    first, second = make_registered("app-one", FIRST, "b1"), make_registered("app-two", SECOND)
    make_run(make_job(job_group=second.id), address=SECOND, state="ACCEPTED")
    drains.drain(session, first.id, FIRST, actor=ADMIN, now_ms=T0)
    found = find_of_groups(session, [first, second], now_ms=T0)
    (one,), (two,) = found[first.id].rows, found[second.id].rows
    assert (one.address, one.boot_id, one.load.running, one.drain is not None) == (FIRST, "b1", 0, True)
    assert (two.address, two.boot_id, two.load.running, two.drain) == (SECOND, "", 1, None)
    assert {one.presence, two.presence} == {Presence.ONLINE}


def test_more_groups_take_no_more_statements(session: Session) -> None:
    groups = [make_registered(f"app-{number}", f"http://127.0.0.1:{2000 + number}") for number in range(6)]
    with statements() as for_one:
        find_of_groups(session, groups[:1], now_ms=T0)
    with statements() as for_all:
        find_of_groups(session, groups, now_ms=T0)
    assert len(for_all) == len(for_one)


def test_a_drained_instance_is_drained_once(session: Session) -> None:
    group = make_group()
    first = drains.drain(session, group.id, FIRST, actor=ADMIN, now_ms=T0)
    again = drains.drain(session, group.id, FIRST.rstrip("/"), actor=ADMIN, now_ms=T0 + 5)
    assert (again.id, again.since_ms) == (first.id, T0)
    with pytest.raises(InvalidInput, match="is not an instance"):
        drains.drain(session, group.id, "http://10.9.9.9:9999", actor=ADMIN, now_ms=T0)


def test_drains_are_listed_for_those_who_see_their_group(session: Session) -> None:
    one, two = make_group(address_list=f"{FIRST},{SECOND}"), make_group(app_name="other-app")
    rows = [
        drains.drain(session, group.id, address, actor=ADMIN, now_ms=T0)
        for group, address in ((one, FIRST), (one, SECOND), (two, FIRST))
    ]
    viewer = Actor(5, "ann", is_admin=False, rights={one.id: frozenset({Right.VIEW})})
    ids = [row.id for row in rows]

    def listed(actor: Actor, group_id: int = 0, before_id: int = 0) -> list[int]:
        found = drains.list_newest(session, actor=actor, group_id=group_id, before_id=before_id, limit=2)
        return [row.id for row in found]

    assert (listed(ADMIN), listed(ADMIN, before_id=ids[1])) == ([ids[2], ids[1]], [ids[0]])
    assert (listed(viewer), listed(viewer, two.id), listed(ADMIN, two.id)) == ([ids[1], ids[0]], [], [ids[2]])
    assert drains.get_drain(session, ids[0], actor=viewer).address == FIRST.rstrip("/")
    for unseen in (ids[2], 999):
        with pytest.raises(NotFound):
            drains.get_drain(session, unseen, actor=viewer)
    with pytest.raises(PermissionDenied):
        drains.undrain(session, one.id, FIRST, actor=viewer, now_ms=T0)
    operator = Actor(6, "bob", is_admin=False, rights={one.id: ALL_RIGHTS})
    drains.undrain(session, one.id, FIRST, actor=operator, now_ms=T0)
    assert listed(viewer) == [ids[1]]
