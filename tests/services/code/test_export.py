"""Export: what it contains, and that it makes the same jobs again elsewhere and changes nothing here."""

from typing import Any

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right
from app.errors import InvalidInput, NotFound
from app.models.channel import AlarmChannel, ChannelScope
from app.models.code import CodeObject
from app.models.group import Group
from app.models.job import Job
from app.services.code.export import Export, export_document
from tests.services.code.steps import ADMIN, apply, plan
from tests.support.code import WHOLE
from tests.support.factories import FIRST, all_rows, make_group, make_job, only_row, save
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

SLACK = "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX"


def export(*, actor: Actor = ADMIN, **options: Any) -> Export:
    with read_scope() as session:
        return export_document(session, actor=actor, **options)


def adopted() -> Group:
    """Commit what an installation may have that never saw a file: equal names, missing children, code."""
    group = make_group(app_name="sample", title="样本", address_type=1, address_list=FIRST)
    mail = make_job(
        job_group=group.id,
        job_desc="Mail",
        glue_type="GLUE_SHELL",
        glue_source="echo ${HOME}\n",
        author="bob",
    )
    close = make_job(
        job_group=group.id,
        job_desc="每日 结算 ",
        child_jobid=f"{mail.id},99999",
        schedule_type="CRON",
        schedule_conf="0 0 2 * * ?",
        time_zone="Europe/Berlin",
        not_before_ms=1_900_000_000_000,
        trigger_status=1,
        trigger_next_time=1_900_000_000_000,
        executor_param=" keep ",
    )
    for number in range(2):
        make_job(job_group=group.id, job_desc="twice", executor_param=str(number))
    settings = f'{{"url": "{SLACK}"}}'
    channel = AlarmChannel(name="Ops", kind="slack", settings=settings, for_all=0, daily=1)
    save(channel)
    save(ChannelScope(channel_id=channel.id, job_id=close.id))
    return group


def filled(exported: Export) -> Any:
    """Return the document with the secrets that a client would put in."""
    document: dict[str, Any] = {**exported.document}
    document["channels"]["Ops"]["settings"]["url"] = SLACK
    return document


def test_an_export_names_what_differs_from_a_new_job() -> None:
    adopted()
    exported = export()
    assert exported.document["jobs"]["sample/每日-结算"] == {
        "description": "每日 结算",
        "owner": "alice",
        "schedule_type": "CRON",
        "schedule": "0 0 2 * * ?",
        "time_zone": "Europe/Berlin",
        "not_before": "2030-03-17T17:46:40.000Z",
        "handler": "demoJobHandler",
        "param": " keep ",
        "children": ["mail"],
        "enabled": True,
    }
    assert sorted(exported.document["jobs"])[1:3] == ["sample/twice", "sample/twice-2"]
    assert exported.document["groups"]["sample"]["addresses"] == [FIRST]
    assert exported.variables == {"channels.Ops.settings.url": "OPS_URL"}
    assert exported.document["channels"]["Ops"]["settings"] == {"url": "${OPS_URL}"}


def test_an_export_is_adopted_where_it_was_made_without_a_change() -> None:
    adopted()
    document = filled(export())
    applied = apply(document)
    assert {(each.action.value, each.fields) for each in applied.plan.objects} == {("adopt", ())}
    assert len(all_rows(CodeObject)) == 6
    assert filled(export()) == document
    assert plan(document).is_empty


@every_database
@pytest.mark.parametrize("is_whole", [False, True])
def test_an_export_makes_the_same_jobs_on_an_empty_installation(is_whole: bool) -> None:
    group = adopted()
    document = filled(export(is_whole=is_whole))
    with session_scope() as session:
        for model in (ChannelScope, AlarmChannel, Job, Group):
            session.query(model).delete()
    apply(document)
    assert filled(export(is_whole=is_whole)) == document
    assert plan(document).is_empty
    assert all_rows(Group)[0].id != group.id


def test_an_export_names_what_the_code_owns() -> None:
    apply(WHOLE)
    assert plan(export().document).is_empty
    apply(
        {"jobs": {"sample/mail": {**WHOLE["jobs"]["sample/mail"], "timeout_s": 0, "schedule_type": "NONE"}}}
    )
    mail = export().document["jobs"]["sample/mail"]
    assert (mail["timeout_s"], mail["schedule_type"], mail["alarm_channels"]) == (0, "NONE", ["Ops"])


def test_a_user_exports_what_he_may_see() -> None:
    group = adopted()
    make_job(job_group=make_group(app_name="hidden-app").id)
    reader = Actor(7, "ann", is_admin=False, rights={group.id: frozenset({Right.VIEW})})
    document = export(actor=reader).document
    assert list(document["groups"]) == ["sample"]
    assert "channels" not in document
    assert document["jobs"]["sample/mail"]["code"] == {"language": "GLUE_SHELL"}
    writer = Actor(7, "ann", is_admin=False, rights={group.id: ALL_RIGHTS})
    assert "source" in export(actor=writer).document["jobs"]["sample/mail"]["code"]
    assert list(export(app_names=["hidden-app"]).document["groups"]) == ["hidden-app"]
    with pytest.raises(NotFound, match="AppName hidden-app"):
        export(actor=reader, app_names=["sample", "hidden-app"])


@every_database
def test_an_export_of_jobs_reads_their_groups_only(monkeypatch: pytest.MonkeyPatch) -> None:
    group = adopted()
    monkeypatch.setattr("app.services.code.export.JOBS_MAX", len(all_rows(Job)))
    hidden = make_job(job_group=make_group(app_name="hidden-app").id)
    with pytest.raises(InvalidInput, match="export some of the groups"):
        export()
    twice = all_rows(Job, job_desc="twice")
    assert list(export(job_ids=[twice[1].id]).document["jobs"]) == ["sample/twice-2"]
    reader = Actor(7, "ann", is_admin=False, rights={group.id: frozenset({Right.VIEW})})
    for missing in (hidden.id, 9_999_999_999):
        with pytest.raises(NotFound, match=str(missing)):
            export(actor=reader, job_ids=[twice[0].id, missing])


def test_values_that_a_file_may_not_have_are_left_to_the_console() -> None:
    """Those that a Java admin stored, for instance."""
    group = make_group(app_name="sample")
    unusual = {
        "executor_timeout": -5,
        "executor_fail_retry_count": 20_000,
        "misfire_strategy": "OLD",
        "schedule_type": "WEIRD",
        "schedule_conf": "now and then",
    }
    job = make_job(job_group=group.id, job_desc="Close", **unusual)
    exported = export()
    assert exported.document["jobs"]["sample/close"] == {
        "description": "Close",
        "owner": "alice",
        "handler": "demoJobHandler",
        "enabled": False,
    }
    names = ["schedule_type", "misfire_strategy", "timeout_s", "retry_count"]
    reason = "left out, because a file may not have its present value"
    assert exported.notes == [f"sample/close: {name} is {reason}" for name in names]
    applied = apply(exported.document)
    assert [each.fields for each in applied.plan.objects if each.kind == "job"] == [()]
    assert only_row(Job, id=job.id).misfire_strategy == "OLD"


def test_an_export_takes_a_constant_number_of_statements() -> None:
    group = adopted()
    with statements() as few:
        export()
    for number in range(20):
        make_job(job_group=group.id, job_desc=f"job {number}")
    with statements() as many:
        export()
    assert len(many) == len(few)


def test_children_that_a_part_lacks_are_left_to_the_console_and_not_cut_off() -> None:
    child = make_job(job_group=make_group(app_name="other").id, job_desc="Child")
    group = make_group(app_name="sample")
    parent = make_job(job_group=group.id, job_desc="Parent", child_jobid=str(child.id))
    for options in ({"job_ids": [parent.id]}, {"app_names": ["sample"]}):
        exported = export(**options)
        assert "children" not in exported.document["jobs"]["sample/parent"]
        assert exported.notes == [
            f"sample/parent: children is left out, because this export lacks some: #{child.id}"
        ]
        apply(exported.document)
        assert {job.child_jobid for job in all_rows(Job) if job.id == parent.id} == {str(child.id)}
    assert export(job_ids=[parent.id, child.id]).document["jobs"]["sample/parent"]["children"] == [
        "other/child"
    ]
    apply(export(job_ids=[child.id]).document)
    assert export(job_ids=[parent.id]).document["jobs"]["sample/parent"]["children"] == ["other/child"]
