"""Tags of jobs: in forms, chips, filters, bulk changes, copies and files; scripts never see them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.tag import JobTag
from app.pipeline.scan import scan
from app.services.jobs import jobs
from app.store.jobs.tags import find_tags
from tests.console.pages import path_after, submit, text_of
from tests.console.tasks import result_of
from tests.support.console import ACTOR, Console, add_group, add_job
from tests.support.statements import statements

IMPORT = "/jobinfo/import"


def imported(console: Console, text: str) -> TestResponse:
    return result_of(console, submit(console, IMPORT, text=text, apply="1"))


def tags_of(job_id: int) -> tuple[str, ...]:
    with read_scope() as session:
        return find_tags(session, [job_id]).get(job_id, ())


def last_changes(job_id: int) -> dict[str, Any]:
    with read_scope() as session:
        entries = (
            session.query(AuditEntry)
            .filter_by(object_type="job", object_id=job_id)
            .order_by(AuditEntry.id.desc())
        )
        found = json.loads(entries[0].changes or "{}")
    assert isinstance(found, dict)
    return found


def form_of(group_id: int, **changes: str) -> dict[str, Any]:
    form = {
        "job_desc": "nightly report",
        "author": "ann",
        "schedule_type": "CRON",
        "cron": "0 0 3 * * ?",
        "glue_type": "BEAN",
        "executor_handler": "demoJobHandler",
        "executor_route_strategy": "FIRST",
        "misfire_strategy": "DO_NOTHING",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "delivery": "auto",
    }
    return {**form, "job_group": group_id, **changes}


def file_of(**changes: Any) -> str:
    job = {
        "appname": "sample-app",
        "jobDesc": "nightly report",
        "executorHandler": "demoJobHandler",
        "author": "ann",
    }
    schedule = {"scheduleType": "CRON", "scheduleConf": "0 0 3 * * ?"}
    return json.dumps({"format": 1, "jobs": [{**job, **schedule, **changes}]})


def ticked(*job_ids: int) -> str:
    return "?" + "&".join(f"id={job_id}" for job_id in job_ids)


def listed(console: Console, query: str) -> set[int]:
    page = console.get(f"/jobinfo?{query}")
    assert page.status_code == 200
    with read_scope() as session:
        ids = [job.id for job in session.query(Job)]
    return {job_id for job_id in ids if f'name="id" value="{job_id}"' in page.text}


def test_tags_are_typed_into_the_form_shown_and_changed(admin: Console) -> None:
    group_id = add_group()
    path = path_after(submit(admin, "/jobinfo/new", **form_of(group_id, tags="Nightly, money，a&b <i>")))
    job_id = int(path.partition("?")[0].rpartition("/")[2])
    assert tags_of(job_id) == ("a&b <i>", "money", "Nightly")
    assert last_changes(job_id)["tags"] == [[], ["a&b <i>", "money", "Nightly"]]
    assert 'href="/xxl-job-admin/jobinfo?tag=a%26b%20%3Ci%3E"' in admin.get(f"/jobinfo/{job_id}").text
    assert 'value="a&amp;b &lt;i&gt;, money, Nightly"' in admin.get(f"/jobinfo/{job_id}/edit").text
    path_after(submit(admin, f"/jobinfo/{job_id}/edit", **form_of(group_id, tags="nightly")))
    assert tags_of(job_id) == ("nightly",)
    assert last_changes(job_id) == {"tags": [["a&b <i>", "money", "Nightly"], ["nightly"]]}
    path_after(submit(admin, f"/jobinfo/{job_id}/edit", **form_of(group_id, tags="")))
    assert tags_of(job_id) == ()


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("x" * 31, "Tags must have 1 to 30 characters"),
        ("a\x07b", "or invisible characters"),
        (",".join(map(str, range(9))), "at most 8 tags; these are 9"),
    ],
)
def test_a_wrong_tag_is_refused_at_its_field_and_nothing_is_stored(
    admin: Console, typed: str, problem: str
) -> None:
    answer = submit(admin, "/jobinfo/new", **form_of(add_group(), tags=typed))
    assert answer.status_code == 400
    assert problem in text_of(answer)
    assert 'id="tags-error"' in answer.text
    with read_scope() as session:
        assert session.query(Job).count() == session.query(JobTag).count() == 0


def test_the_list_is_filtered_by_a_tag_in_whatever_case(admin: Console) -> None:
    group_id = add_group()
    both = add_job(group_id, tags=("Nightly", "money"))
    nightly = add_job(group_id, tags=("nightly", "café"))
    bare = add_job(group_id)
    assert listed(admin, "") == {both, nightly, bare}
    assert listed(admin, "tag=NIGHTLY") == {both, nightly}
    assert (
        listed(admin, "tag=night")
        == listed(admin, "tag=cafe")
        == listed(admin, "tag=%00")
        == listed(admin, "tag=" + "x" * 999)
        == set()
    )
    assert listed(admin, "tag=nightly&author=nora") == set()
    page = admin.get("/jobinfo?tag=nightly&author=ann&page=1").text
    assert 'href="/xxl-job-admin/jobinfo?author=ann">Tag: <b>nightly</b>' in page
    assert 'href="/xxl-job-admin/jobinfo?author=ann&amp;tag=money"' in page, "a chip keeps the other filters"
    assert "/jobinfo/export?author=ann&amp;tag=nightly" in page
    exported = yaml.safe_load(admin.get("/jobinfo/export?tag=money").text)["jobs"]
    assert [job["tags"] for job in exported.values()] == [["money", "Nightly"]]


def test_several_jobs_get_a_tag_or_lose_it(admin: Console) -> None:
    group_id = add_group()
    full = add_job(group_id, tags=tuple("abcdefgh"))
    has, bare = add_job(group_id, tags=("Nightly",)), add_job(group_id)
    assert "Add a tag to 3 jobs" in text_of(admin.get(f"/jobinfo/bulk/tag{ticked(full, has, bare)}"))
    result = result_of(admin, submit(admin, f"/jobinfo/bulk/tag{ticked(full, has, bare)}", tag=" nightly "))
    assert "2 of 3 jobs: tagged." in text_of(result)
    assert "at most 8 tags; these are 9" in text_of(result)
    assert (tags_of(has), tags_of(bare), len(tags_of(full))) == (("Nightly",), ("nightly",), 8)
    assert last_changes(bare) == {"tags": [[], ["nightly"]]}
    result = result_of(admin, submit(admin, f"/jobinfo/bulk/untag{ticked(full, has, bare)}", tag="NIGHTLY"))
    assert "3 of 3 jobs: tag removed." in text_of(result)
    assert tags_of(has) == tags_of(bare) == ()
    assert last_changes(has) == {"tags": [["Nightly"], []]}


def test_a_tag_of_several_jobs_is_stored_as_it_was_typed(admin: Console) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id)]
    result = result_of(admin, submit(admin, f"/jobinfo/bulk/tag{ticked(*ids)}", tag="money & <b>"))
    assert "2 of 2 jobs: tagged." in text_of(result)
    assert [tags_of(job_id) for job_id in ids] == [("money & <b>",)] * 2


def test_a_wrong_tag_for_several_jobs_is_asked_again(admin: Console) -> None:
    job_id = add_job(add_group())
    for wrong in ("", "a,b", "x" * 31):
        answer = submit(admin, f"/jobinfo/bulk/tag{ticked(job_id)}", tag=wrong)
        assert answer.status_code == 400
        assert 'id="tag-error"' in answer.text
    assert tags_of(job_id) == ()


def test_tagging_needs_the_right_to_edit(admin: Console, normal_user: Callable[..., Console]) -> None:
    mine, foreign = add_group("mine-app"), add_group("other-app")
    job_id, other_id = add_job(mine), add_job(foreign)
    norman = normal_user(mine, rights={mine: frozenset({Right.VIEW, Right.OPERATE})})
    assert submit(norman, f"/jobinfo/bulk/tag{ticked(job_id)}", tag="x").status_code == 403
    assert submit(norman, f"/jobinfo/bulk/tag{ticked(other_id)}", tag="x").status_code == 404
    assert (tags_of(job_id), tags_of(other_id)) == ((), ())


def test_a_copy_carries_the_tags(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, tags=("money",))
    assert 'name="tags" type="text" value="money"' in admin.get(f"/jobinfo/{job_id}/copy").text


def test_an_import_sets_the_tags_and_an_older_file_leaves_them(admin: Console) -> None:
    job_id = add_job(add_group(), tags=("old",))
    assert "1 unchanged" in text_of(imported(admin, file_of()))
    assert tags_of(job_id) == ("old",)
    dry = text_of(submit(admin, IMPORT, text=file_of(tags=["b", "a", "A"])))
    assert "Tags : old → a, b" in dry
    assert tags_of(job_id) == ("old",)
    imported(admin, file_of(tags=["b", "a", "A"]))
    assert tags_of(job_id) == ("a", "b")
    assert last_changes(job_id) == {"tags": [["old"], ["a", "b"]]}
    imported(admin, file_of(tags=[]))
    assert tags_of(job_id) == ()
    imported(admin, file_of(jobDesc="a new one", tags=["new"]))
    with read_scope() as session:
        new_id = session.query(Job).filter_by(job_desc="a new one").one().id
    assert tags_of(new_id) == ("new",)
    assert last_changes(new_id)["tags"] == [[], ["new"]]


@pytest.mark.parametrize("wrong", ["a", [1], ["x" * 31], ["a,b"], [""], [str(number) for number in range(9)]])
def test_wrong_tags_of_a_file_are_named(admin: Console, wrong: Any) -> None:
    add_group()
    answer = submit(admin, IMPORT, text=file_of(tags=wrong), apply="1")
    assert ".tags" in text_of(answer)
    with read_scope() as session:
        assert session.query(Job).count() == 0


def test_scripts_neither_see_nor_lose_tags(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, tags=("money",))
    answer = admin.call("/jobinfo/pageList", jobGroup=group_id, triggerStatus=-1)
    assert "tag" not in json.dumps(answer).lower()
    bean = {name: value for name, value in answer["data"][0].items() if value is not None}
    assert admin.call("/jobinfo/update", **{**bean, "jobDesc": "by a script", "tags": "x"})["code"] == 200
    assert tags_of(job_id) == ("money",)
    by_group = admin.call("/joblog/getJobsByGroup", jobGroup=group_id)
    assert "tag" not in json.dumps(by_group).lower()
    assert (
        admin.call("/jobinfo/pageList", jobGroup=group_id, triggerStatus=-1, tag="nothing")["recordsTotal"]
        == 1
    )


def test_a_deleted_job_leaves_no_tag_behind(admin: Console) -> None:
    group_id = add_group()
    gone, kept = add_job(group_id, tags=("money",)), add_job(group_id, tags=("money",))
    with session_scope() as session:
        jobs.remove_job(session, gone, actor=ACTOR, now_ms=now_ms())
    with read_scope() as session:
        assert [row.job_id for row in session.query(JobTag)] == [kept]


def test_the_scan_touches_none_of_it(admin: Console) -> None:
    add_job(add_group(), start=True, schedule_type="FIX_RATE", schedule_conf="1", tags=("money",))
    with statements() as seen:
        assert scan(node="one", zone="Asia/Shanghai", now_ms=now_ms())
    assert not [
        sql
        for sql in seen
        if any(table in sql for table in ("xxl_job_tag", "xxl_job_favourite", "xxl_job_view"))
    ]
