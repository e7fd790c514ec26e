"""Values that another one replaces: a plan shows them, and an undo puts them back."""

from typing import Any

import pytest

from app.domain.code.plan import FieldChange
from app.errors import Conflict
from tests.services.code.steps import CLOSE, apply, plan
from tests.support.code import exported, undo

pytestmark = pytest.mark.usefixtures("database")

ADDRESSES = ["http://127.0.0.1:9999/"]
MANUAL = {"address_type": "manual", "addresses": ADDRESSES}
OPS: dict[str, Any] = {"kind": "mail", "settings": {"addresses": "ops@example.com"}}


def test_the_addresses_of_a_group_that_becomes_automatic_come_back() -> None:
    apply({"groups": {"sample": {"title": "Sample", **MANUAL}}})
    before = exported()
    document = {"groups": {"sample": {"title": "Sample", "address_type": "automatic"}}}
    applied = apply(document)
    assert applied.plan.objects[0].fields == (
        FieldChange("address_type", "manual", "automatic"),
        FieldChange("addresses", ADDRESSES, []),
    )
    assert plan(document).is_empty
    undo(applied.apply_id)
    assert exported() == before


def test_the_scopes_of_a_channel_that_is_for_all_come_back() -> None:
    routes = {"groups": ["sample"], "jobs": ["sample/close"]}
    sample: dict[str, Any] = {"groups": {"sample": {}}, "jobs": {"sample/close": CLOSE}}
    apply({**sample, "channels": {"Ops": {**OPS, **routes}}})
    before = exported()
    document = {"channels": {"Ops": {**OPS, "for_all": True}}}
    applied = apply(document)
    assert applied.plan.objects[0].fields == (
        FieldChange("for_all", False, True),
        FieldChange("groups", ["sample"], []),
        FieldChange("jobs", ["sample/close"], []),
    )
    assert plan(document).is_empty
    undo(applied.apply_id)
    assert exported() == before


def test_addresses_that_were_entered_since_are_not_overwritten() -> None:
    apply({"groups": {"sample": MANUAL}})
    applied = apply({"groups": {"sample": {"address_type": "automatic"}}})
    apply({"groups": {"sample": {**MANUAL, "addresses": ["http://127.0.0.1:8888/"]}}})
    with pytest.raises(Conflict, match="group sample: address_type, addresses changed since"):
        undo(applied.apply_id)
