"""Values of variables and secrets, as the pipeline reads them."""

from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm import Session

from app.models.variable import Variable, VariableVersion
from app.settings.sealing import PREFIX, CannotUnseal, Sealer
from app.store.variables import values, variables
from tests.support.factories import T0, save
from tests.support.statements import statements

DAY = 86_400_000


def store(name: str, group_id: int = 0, value: str | None = None, **columns: Any) -> Variable:
    return save(Variable(name=name, group_id=group_id, value=value, **columns))


def test_the_variable_of_a_group_goes_before_that_of_the_installation(session: Session) -> None:
    store("A", value="of all")
    store("A", 7, value="of seven")
    store("A", 9, value="of nine")
    store("B", value="")
    store("S", 7, secret="a secret value")
    with statements() as executed:
        found = values.find_values(session, ["A", "B", "S", "a", "X"], [7, 8])
    assert len(executed) == 1
    assert found == {(7, "A"): "of seven", (7, "B"): "", (8, "A"): "of all", (8, "B"): ""}
    assert values.find_values(session, [], [7]) == {}


def test_secrets_are_read_sealed_and_only_by_groups_that_may_use_them(session: Session) -> None:
    store("S", secret="of the installation", allowed="[7,8]")
    store("S", 8, secret="of group eight")
    store("T", secret="for no group at all")
    store("V", 7, value="no secret")
    with statements() as executed:
        found = values.find_sealed(session, ["S", "T", "V"], [7, 8, 9])
    assert len(executed) == 1
    assert all(text.startswith(PREFIX) for text in found.values())
    assert {key: values.open_sealed(text) for key, text in found.items()} == {
        (7, "S"): "of the installation",
        (8, "S"): "of group eight",
    }
    with pytest.raises(CannotUnseal):
        values.open_sealed(Sealer(lambda: "another key of thirty-two characters").seal("x"))


def test_secrets_of_other_groups_take_no_place_of_usable_names(session: Session) -> None:
    for name in ("A", "B"):
        store(name, secret="for another group", allowed="[8]")
    store("C", 7, value="")
    store("D", secret="for seven too", allowed="[7]")
    store("E", value="")
    assert variables.list_usable_names(session, 7, limit=2) == [("C", False), ("D", True)]


def test_a_secret_of_the_greatest_length_is_stored(session: Session) -> None:
    text = "\U0001f511" * 10_000
    store("S", 7, secret=text)
    ((_key, sealed),) = values.find_sealed(session, ["S"], [7]).items()
    assert values.open_sealed(sealed) == text


def test_no_loaded_row_has_the_value_of_a_secret(session: Session) -> None:
    store("S", 7, secret="a secret value")
    variable = session.scalars(select(Variable)).one()
    with pytest.raises(InvalidRequestError):
        _ = variable.secret


def test_values_of_ninety_days_are_masked_where_they_could_be_used(session: Session) -> None:
    store("S", secret="present value", allowed="[7]")
    store("S", 7, secret="of the group")
    store("S", 8, secret="of another group")
    former = {"name": "S", "version": 1}
    save(VariableVersion(secret="former value", allowed="[7,8]", replaced_ms=T0 - 90 * DAY, **former))
    save(VariableVersion(secret="too old value", allowed="[7]", replaced_ms=T0 - 91 * DAY, **former))
    save(VariableVersion(secret="not for seven", allowed="[8]", replaced_ms=T0, **former))
    save(VariableVersion(secret="of the group", group_id=7, replaced_ms=T0, **former))
    with statements() as executed:
        (masked,) = values.find_masked_by_group(session, {7: ["S", "X"]}, now_ms=T0)[7]
    assert len(executed) == 1
    assert (masked.name, set(masked.values)) == ("S", {"present value", "former value", "of the group"})
    assert len(masked.values) == 3
    assert repr(masked) == "SecretValues('S', 3 values)"


def test_former_values_are_copied_sealed_and_cleaned_up(session: Session) -> None:
    secret = store("S", 7, secret="a secret value", version=3, allowed="[]")
    variable = store("V", 7, value="text")
    for row in (secret, variable):
        variables.keep_version(session, row.id, username="ann", now_ms=T0)
    assert [version.version for version in variables.list_versions(session, 7, "S", limit=5)] == [3]
    ((name, sealed),) = [each for each in values.find_all_sealed(session) if each[0] == "S"][1:]
    assert (name, values.open_sealed(sealed)) == ("S", "a secret value")
    assert variables.delete_former(session, before_ms=T0, limit=9) == 0
    assert variables.delete_former(session, before_ms=T0 + 1, limit=9) == 1, "that of the variable stays"
    variables.delete_variable(session, variable.id)
    assert variables.delete_former(session, before_ms=T0 + 1, limit=9) == 1
