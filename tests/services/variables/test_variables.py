"""Variables and secrets: who may list and change them, what is kept and audited, and what is never read."""

from dataclasses import replace
from typing import Any

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.text.fingerprints import fingerprint
from app.errors import ChangedMeanwhile, Conflict, InvalidInput, NotConfigured, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.variable import Variable, VariableVersion
from app.services.executors import groups
from app.services.installation import sealed_tokens
from app.services.report.reporting import Cleaner
from app.services.variables import variables
from app.services.variables.variables import VariableDraft
from app.settings.config import Config
from app.settings.sealing import use_key
from app.store.variables import values
from app.store.variables.variables import VariableFilter
from tests.support.factories import T0, all_rows, make_group, make_job, only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")
SECRET, NEW_SECRET = "the first secret", "the second secret"
DAY = 86_400_000


def user(group_id: int, *rights: Right) -> Actor:
    return Actor(user_id=2, username="bob", is_admin=False, rights={group_id: frozenset(rights)})


def add(name: str, group_id: int = 0, *, actor: Actor = ADMIN, **draft: Any) -> int:
    with session_scope() as session:
        made = VariableDraft(name, **{"is_confirmed": True, **draft})
        return variables.add_variable(session, made, group_id=group_id, actor=actor, now_ms=T0)


def change(variable_id: int, *, actor: Actor = ADMIN, now_ms: int = T0, **draft: Any) -> None:
    with session_scope() as session:
        made = VariableDraft(**{"is_confirmed": True, **draft})
        variables.change_variable(session, variable_id, made, actor=actor, now_ms=now_ms)


def remove(variable_id: int, *, actor: Actor = ADMIN) -> None:
    with session_scope() as session:
        variables.remove_variable(session, variable_id, actor=actor, now_ms=T0)


def names(actor: Actor, **wanted: Any) -> list[str]:
    with read_scope() as session:
        page = variables.list_page(session, VariableFilter(**wanted), actor=actor, start=0, length=9)
        listed = variables.list_after(session, VariableFilter(**wanted), actor=actor, after_id=0, limit=9)
    assert page.total == len(page.rows)
    assert sorted(row.id for row in page.rows) == [row.id for row in listed]
    return [row.name for row in page.rows]


def sealed(name: str, group_id: int) -> str | None:
    with read_scope() as session:
        text = values.find_sealed(session, [name], [group_id]).get((group_id, name))
    return None if text is None else values.open_sealed(text)


@every_database
def test_changes_keep_the_former_values_and_are_audited_without_those_of_secrets() -> None:
    group = make_group()
    variable_id = add("REGION", group.id, value="eu-1")
    secret_id = add("KEY", group.id, secret=SECRET)
    change(variable_id, value="eu-2", now_ms=T0 + 1)
    change(variable_id, value="eu-2", now_ms=T0 + 2)
    change(secret_id, secret=NEW_SECRET)
    variable = only_row(Variable, name="REGION")
    assert (variable.value, variable.version, variable.updated_ms) == ("eu-2", 2, T0 + 1), "no second change"
    assert sealed("KEY", group.id) == NEW_SECRET
    former = {row.name: (row.version, row.value, row.username) for row in all_rows(VariableVersion)}
    assert former == {"REGION": (1, "eu-1", "ann"), "KEY": (1, None, "ann")}
    remove(secret_id)
    remove(variable_id)
    entries = all_rows(AuditEntry)
    assert [entry.action for entry in entries] == [
        "variable.add",
        "variable.add",
        "variable.update",
        "variable.update",
        "variable.remove",
        "variable.remove",
    ]
    assert '"value": ["eu-1", "eu-2"]' in (entries[2].changes or "")
    texts = "".join(entry.changes or "" for entry in entries)
    assert SECRET not in texts
    assert NEW_SECRET not in texts
    assert texts.count("***") == 2
    assert add("REGION", group.id, value="eu-3") > 0
    assert only_row(Variable).version == 3, "its history goes on"


@every_database
def test_five_former_values_are_kept_of_a_variable_and_more_of_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(variables, "SECRETS_KEPT", 6)
    group = make_group()
    variable_id, secret_id = add("A", group.id, value="0"), add("B", group.id, secret=SECRET)
    for number in range(1, 8):
        change(variable_id, value=str(number))
        change(secret_id, secret=f"{NEW_SECRET} {number}")
    assert [row.value for row in all_rows(VariableVersion, name="A")] == ["2", "3", "4", "5", "6"]
    assert [row.version for row in all_rows(VariableVersion, name="B")] == [2, 3, 4, 5, 6, 7]


@every_database
def test_the_clean_up_deletes_former_values_of_secrets_after_ninety_days(config: Config) -> None:
    group = make_group()
    variable_id, secret_id = add("A", group.id, value="0"), add("B", group.id, secret=SECRET)
    change(variable_id, value="1")
    change(secret_id, secret=NEW_SECRET)
    Cleaner(config).tick(T0 + 90 * DAY)
    assert len(all_rows(VariableVersion)) == 2
    Cleaner(config).tick(T0 + 90 * DAY + 1)
    assert only_row(VariableVersion).name == "A"


def test_a_name_is_unique_in_its_group() -> None:
    group = make_group()
    add("A", group.id, value="1")
    add("A", value="2")
    add("a", group.id, value="3")
    with pytest.raises(InvalidInput, match="A already") as refused:
        add("A", group.id, secret=SECRET)
    assert SECRET not in repr(refused.value)


def test_those_of_a_group_are_changed_with_the_right_to_edit() -> None:
    group, other = make_group(), make_group()
    variable_id = add("A", group.id, value="1")
    viewer, editor = user(group.id, Right.VIEW, Right.OPERATE), user(group.id, Right.VIEW, Right.EDIT)
    change(variable_id, actor=editor, value="2")
    add("B", group.id, actor=editor, value="2")
    for action in (
        lambda: change(variable_id, actor=viewer, value="3"),
        lambda: remove(variable_id, actor=viewer),
        lambda: add("C", group.id, actor=viewer, value="3"),
        lambda: add("C", actor=editor, value="3"),
    ):
        with pytest.raises(PermissionDenied):
            action()
    stranger = user(other.id, *ALL_RIGHTS)
    for action in (
        lambda: change(variable_id, actor=stranger, value="3"),
        lambda: remove(variable_id, actor=stranger),
        lambda: add("C", group.id, actor=stranger, value="3"),
        lambda: add("C", 999, value="3"),
    ):
        with pytest.raises(NotFound):
            action()
    assert names(stranger) == []
    assert names(viewer) == ["A", "B"]
    assert names(user(group.id)) == []


@every_database
def test_the_list_has_filters_and_shows_secrets_of_the_installation_to_those_who_use_them() -> None:
    group, other = make_group(), make_group()
    add("A", value="1")
    secret_id = add("S", secret=SECRET, allowed=[group.id])
    add("T", group.id, secret=SECRET)
    member, stranger = user(group.id, Right.VIEW), user(other.id, Right.VIEW)
    assert names(ADMIN) == names(member) == ["A", "S", "T"]
    assert names(stranger) == ["A"]
    assert names(member, group_id=0) == ["A", "S"]
    assert names(member, group_id=group.id) == ["T"]
    assert names(member, is_secret=False) == ["A"]
    assert names(member, text="s") == ["S"]
    assert names(member, name="s") == []
    with read_scope() as session:
        assert variables.get_variable(session, secret_id, actor=member).name == "S"
        with pytest.raises(NotFound):
            variables.get_variable(session, secret_id, actor=stranger)
        with pytest.raises(PermissionDenied):
            variables.get_variable(session, secret_id, actor=member, right=Right.EDIT)


def test_a_secret_is_set_after_a_confirmation_alone() -> None:
    group = make_group()
    with pytest.raises(PermissionDenied):
        add("S", group.id, secret=SECRET, is_confirmed=False)
    secret_id = add("S", group.id, secret=SECRET)
    of_all = add("S", secret=SECRET)
    with pytest.raises(PermissionDenied):
        change(secret_id, secret=NEW_SECRET, is_confirmed=False)
    with pytest.raises(PermissionDenied):
        change(of_all, allowed=[group.id], is_confirmed=False)
    add("A", group.id, value="1", is_confirmed=False)
    assert sealed("S", group.id) == SECRET


def test_a_variable_does_not_become_a_secret_and_a_secret_no_variable() -> None:
    group = make_group()
    variable_id, secret_id = add("A", group.id, value="1"), add("B", group.id, secret=SECRET)
    with pytest.raises(InvalidInput, match="delete it first"):
        change(variable_id, secret=SECRET)
    with pytest.raises(InvalidInput, match="delete it first"):
        change(secret_id, value="1")
    drafts: list[dict[str, Any]] = [{}, {"value": "1", "secret": SECRET}, {"secret": "short"}]
    for draft in (*drafts, {"value": "1", "allowed": [1]}):
        with pytest.raises(InvalidInput):
            add("C", group.id, **draft)


@every_database
def test_the_groups_of_a_secret_change_without_its_value() -> None:
    group = make_group()
    secret_id = add("S", secret=SECRET)
    assert sealed("S", group.id) is None
    with pytest.raises(InvalidInput, match="id 999"):
        change(secret_id, allowed=[999])
    change(secret_id, allowed=[group.id])
    assert sealed("S", group.id) == SECRET
    change(secret_id, secret=NEW_SECRET)
    change(secret_id, allowed=[])
    assert sealed("S", group.id) is None
    with read_scope() as session:
        (masked,) = values.find_masked_by_group(session, {group.id: ["S"]}, now_ms=T0)[group.id]
    assert set(masked.values) == {SECRET, NEW_SECRET}, "what the group could use"


def test_another_change_meanwhile_is_noticed() -> None:
    group = make_group()
    variable_id = add("A", group.id, value="1")
    with read_scope() as session:
        state = variables.state_of(variables.get_variable(session, variable_id, actor=ADMIN))
    change(variable_id, value="2")
    with pytest.raises(ChangedMeanwhile):
        change(variable_id, value="3", loaded=fingerprint(state))
    draft = VariableDraft(secret=SECRET)
    assert SECRET not in repr(draft)
    assert SECRET not in repr(replace(draft, name="A"))


@every_database
def test_the_variables_of_a_deleted_group_go_with_it() -> None:
    make_group()
    group = make_group()
    add("A", group.id, value="1")
    add("B", group.id, secret=SECRET)
    add("S", secret=SECRET, allowed=[group.id])
    with session_scope() as session:
        groups.remove_group(session, group.id, actor=ADMIN, now_ms=T0)
    assert (only_row(Variable).name, only_row(Variable).allowed) == ("S", "[]")
    assert sorted(row.name for row in all_rows(VariableVersion)) == ["A", "B"]


@every_database
def test_jobs_that_use_a_variable_are_found() -> None:
    job = make_job(executor_param="run ${var.A_B} ${secret.S}", fill_parameter=1)
    other = make_job(executor_param="${var.A_B}", fill_parameter=1)
    make_job(executor_param="${var.A_B}", job_group=job.job_group)
    make_job(executor_param="${var.AxB} ${var.A_BC} ${var.a_b}", job_group=job.job_group, fill_parameter=1)
    of_all = add("A_B", value="1")
    assert jobs_of(of_all) == [job.id, other.id]
    assert jobs_of(of_all, actor=user(other.job_group, Right.VIEW)) == [other.id]
    own = add("A_B", job.job_group, value="2")
    assert (jobs_of(of_all), jobs_of(own)) == ([other.id], [job.id])
    assert jobs_of(add("S", secret=SECRET)) == []
    assert jobs_of(add("S", other.job_group, secret=SECRET)) == []


def jobs_of(variable_id: int, actor: Actor = ADMIN) -> list[int]:
    with read_scope() as session:
        variable = variables.get_variable(session, variable_id, actor=actor)
        return [job.id for job in variables.list_using_jobs(session, variable, actor=actor)]


def test_the_number_of_variables_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "VARIABLES_MAX", 1)
    add("A", value="1")
    with pytest.raises(Conflict):
        add("B", value="1")


def test_a_start_with_another_application_key_names_the_secret(config: Config) -> None:
    add("A", make_group().id, secret=SECRET)
    sealed_tokens.check(config)
    use_key(lambda: "another key of at least thirty-two characters")
    with pytest.raises(NotConfigured, match="the secret A was encrypted with another"):
        sealed_tokens.check(config)
