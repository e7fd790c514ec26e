"""Pages of variables and secrets: list, page of one, forms with confirmation, and nothing of a secret."""

import re

import pytest
from sqlalchemy import update

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.job import Job
from app.models.session import LoginSession
from app.models.variable import Variable, VariableVersion
from app.store.variables import values
from tests.console.pages import markup_of, path_after, submit, text_of, unnamed_path_after
from tests.support.console import ADMIN_PASSWORD, Console, add_group, add_job, add_user
from tests.support.factories import all_rows, only_row

pytestmark = pytest.mark.databases("sqlite")

SECRET, NEW_SECRET = "the first secret", "the second secret"


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def add(admin: Console, name: str, group_id: int = 0, **fields: str) -> int:
    kind = "?kind=secret" if "secret" in fields else ""
    answer = submit(admin, f"/variables/new{kind}", name=name, group=str(group_id), **fields)
    assert unnamed_path_after(answer) == "/variables?done=added"
    return only_row(Variable, name=name, group_id=group_id).id


def test_an_empty_page_says_what_variables_are_for(admin: Console) -> None:
    page = admin.get("/variables")
    assert "No variable yet" in text_of(page)
    assert "${secret.NAME}" in text_of(page)
    assert "No variable matches the filters" in text_of(admin.get("/variables?name=x"))


def test_a_variable_is_added_shown_changed_and_deleted(admin: Console) -> None:
    group = add_group()
    add_job(group, executor_param="run ${var.REGION}", job_desc="by region")
    variable_id = add(admin, "REGION", group, value="eu-1\r\n<b>")
    page = admin.get("/variables")
    assert "eu-1 &lt;b&gt;" in markup_of(page)
    for text in ("REGION", "Sample", "admin"):
        assert text in text_of(page)
    path = f"/variables/{variable_id}"
    assert path_after(submit(admin, f"{path}/edit", value="eu-2")).startswith(f"{path}?done=saved")
    shown = text_of(admin.get(path))
    assert "${var.REGION}" in shown
    assert "eu-2" in shown
    assert "eu-1 <b>" in shown
    assert "No job uses it" in shown
    deleted = submit(admin, f"{path}/delete")
    assert unnamed_path_after(deleted) == "/variables?done=removed"
    assert all_rows(Variable) == []
    assert only_row(VariableVersion, version=2).value == "eu-2"


def test_the_page_of_a_variable_links_the_jobs_that_use_it(admin: Console) -> None:
    group = add_group()
    job = add_job(group, executor_param="run ${var.REGION}", job_desc="by region")
    with session_scope() as session:
        session.execute(update(Job).values(fill_parameter=1))
    variable_id = add(admin, "REGION", group, value="eu-1")
    assert f'href="/xxl-job-admin/jobinfo/{job}"' in admin.get(f"/variables/{variable_id}").text
    assert "Jobs that name it now: 1." in text_of(admin.get(f"/variables/{variable_id}/delete"))


def test_the_list_is_filtered(admin: Console) -> None:
    group, other = add_group(), add_group("other-app", "Other")
    add(admin, "REGION", group, value="1")
    add(admin, "KEY", other, secret=SECRET)
    add(admin, "ZONE", value="2")

    def names(query: str) -> list[str]:
        return re.findall(r'<a class="mono wrap-any"[^>]*>(\w+)</a>', admin.get(f"/variables?{query}").text)

    assert names("") == ["KEY", "REGION", "ZONE"]
    assert names("kind=secret") == ["KEY"]
    assert names("group=0") == ["ZONE"]
    assert names(f"group={group}&kind=variable") == ["REGION"]
    assert names("name=on") == ["REGION", "ZONE"]


def test_no_page_shows_a_secret(admin: Console) -> None:
    group = add_group()
    secret_id = add(admin, "KEY", group, secret=SECRET)
    path = f"/variables/{secret_id}"
    submit(admin, f"{path}/edit", secret=NEW_SECRET)
    with read_scope() as session:
        ((_key, sealed),) = values.find_sealed(session, ["KEY"], [group]).items()
    assert values.open_sealed(sealed) == NEW_SECRET
    refused = [
        submit(admin, "/variables/new?kind=secret", name="1", group=str(group), secret=SECRET),
        submit(admin, "/variables/new?kind=secret", name="A", group="", secret=SECRET),
        submit(admin, f"{path}/edit", secret=SECRET, loaded="another version"),
        submit(admin, f"{path}/edit", secret="s3cret!"),
    ]
    assert [answer.status_code for answer in refused] == [400] * 4
    assert "Enter it again" in text_of(refused[0])
    pages = [
        admin.get(each) for each in ("/variables", path, f"{path}/edit", f"{path}/delete", "/user/audit")
    ]
    for page in (*pages, *refused):
        for text in (SECRET, NEW_SECRET, "s3cret!"):
            assert text not in page.text
    assert "stored encrypted and never shown" in text_of(pages[1])
    history = text_of(pages[-1])
    assert "changed variable KEY" in history
    assert re.search(r"Secret:? set", history), history
    version = only_row(Variable).version
    submit(admin, f"{path}/edit", secret="")
    assert only_row(Variable).version == version, "an empty field keeps it"


def test_a_secret_is_saved_after_the_password_alone(console: Console) -> None:
    admin = console.log_in("admin", ADMIN_PASSWORD)
    group = add_group()
    fields = {"name": "KEY", "group": str(group), "secret": SECRET}
    path = "/variables/new?kind=secret"
    assert "Your password" in text_of(admin.get(path))
    for password in ("", "guess-one-1"):
        refused = submit(admin, path, password=password, **fields)
        assert (refused.status_code, all_rows(Variable)) == (400, [])
        assert SECRET not in refused.text
    assert "Your password" not in text_of(admin.get("/variables/new")), "a variable needs none"
    submit(admin, path, password=ADMIN_PASSWORD, **fields)
    assert only_row(Variable).is_secret
    with session_scope() as session:
        session.execute(update(LoginSession).values(confirmed_ms=0))
    refused = submit(admin, f"/variables/{only_row(Variable).id}/edit", secret=NEW_SECRET)
    assert (refused.status_code, only_row(Variable).version) == (400, 1)


def test_a_secret_of_the_installation_names_executors(admin: Console) -> None:
    group = add_group()
    secret_id = add(admin, "KEY", secret=SECRET, allowed=str(group))
    assert only_row(Variable).allowed == f"[{group}]"
    assert "Sample" in text_of(admin.get(f"/variables/{secret_id}"))
    assert submit(admin, f"/variables/{secret_id}/edit", secret="", allowed="999").status_code == 400
    path_after(submit(admin, f"/variables/{secret_id}/edit", secret="", allowed=""))
    assert only_row(Variable).allowed == "[]"
    assert "no executor yet" in text_of(admin.get(f"/variables/{secret_id}"))


def test_an_editor_is_offered_own_executors_only(console: Console) -> None:
    group, other = add_group(), add_group("other-app", "Other")
    add_user(
        "eve", [group, other], {group: frozenset({Right.VIEW, Right.EDIT}), other: frozenset({Right.VIEW})}
    )
    eve = console.log_in("eve")
    form = eve.get("/variables/new").text
    assert f'<option value="{group}">' in form
    assert f'<option value="{other}">' not in form
    assert '<option value="0">' not in form
    variable_id = add(eve, "REGION", group, value="1")
    assert "Variables" in text_of(eve.get("/help")), "in the menu"
    assert f"/variables/{variable_id}/edit" in eve.get("/variables").text
    viewer = console.another()
    add_user("vic", [group], {group: frozenset({Right.VIEW})})
    viewer.log_in("vic")
    assert f"/variables/{variable_id}/edit" not in viewer.get("/variables").text
    assert "Add a variable" not in text_of(viewer.get("/variables"))


def test_a_search_text_becomes_filters(admin: Console) -> None:
    group = add_group()
    add(admin, "REGION", group, value="eu-1")
    for typed, expected in (
        ("reg", "name=reg"),
        ("kind:secret", "kind=secret"),
        ("executor:sample reg", f"group={group}&name=reg"),
        ("executor:installation", "group=0"),
    ):
        address = admin.get("/variables", query_string={"q": typed}).headers.get("Location", "")
        assert address.endswith(f"/variables?{expected}"), typed
    page = admin.get("/variables?group=0&kind=secret")
    assert "Executor: Installation" in text_of(page)
    assert 'href="/xxl-job-admin/variables?kind=secret"' in page.text, "a chip keeps the other filters"
    assert "No executor is called “x”." in text_of(admin.get("/variables?q=executor:x"))
