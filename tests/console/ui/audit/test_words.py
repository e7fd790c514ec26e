"""Change history in words: every action has a sentence, objects are linked, values are those of the pages."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.console.jobs.history import version_words
from app.console.ui.audit.sentences import SENTENCES
from app.console.ui.audit.words import field_label, part_of, value_text
from app.database.engine import read_scope, session_scope
from app.domain.enums import RouteStrategy
from app.models.audit import AuditEntry
from app.models.job import Job
from app.services.alarms import deliveries, notifier
from tests.console.pages import text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, make_log, save

pytestmark = pytest.mark.databases("sqlite")

APP = Path(__file__).resolve().parents[4] / "app"
#: functions whose first or second argument is the code of an action
RECORDING = {"record", "_record", "Entry", "note", "_audit"}
CODE = re.compile(r"[a-z]+(\.[a-z_]+)?")


def test_every_recorded_action_has_a_sentence() -> None:
    used = {code for path in APP.rglob("*.py") for code in codes_in(ast.parse(path.read_text("utf-8")))}
    used |= {deliveries.DELIVERY_FAILED, notifier.NODE_NOTICE}
    assert {"job.add", "job.ended", "login", "refused.admin", "user.update", "group.drain"} <= used
    assert sorted(used - {code for part in SENTENCES.values() for code in part}) == []


def test_a_sentence_is_found_by_the_first_part_of_its_action() -> None:
    assert {part_of(code) for codes in SENTENCES.values() for code in codes} == set(SENTENCES)


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Yield the codes among the arguments of the functions that record, and values of ``action``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            values = [*node.args[:2], *(each.value for each in node.keywords if each.arg == "action")]
            yield from texts_of(values) if name in RECORDING or name == "replace" else ()
        elif isinstance(node, ast.Dict):
            keyed = zip(node.keys, node.values, strict=True)
            yield from texts_of([v for k, v in keyed if isinstance(k, ast.Constant) and k.value == "action"])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            named = zip(node.targets[0].elts, getattr(node.value, "elts", []), strict=False)
            yield from texts_of([v for k, v in named if getattr(k, "id", "") == "action"])


def texts_of(nodes: list[Any]) -> Iterator[str]:
    for node in nodes:
        branches = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
        for each in branches:
            value = each.value if isinstance(each, ast.Constant) else None
            if isinstance(value, str) and CODE.fullmatch(value):
                yield value


def enter(action: str, target: tuple[str, int] = ("", 0), changes: Any = None, **columns: Any) -> None:
    with session_scope() as session:
        row = {"at_ms": T0, "username": "ann", "action": action, "object_type": target[0]} | columns
        text = json.dumps(changes) if changes is not None else None
        session.add(AuditEntry(**row, object_id=target[1], changes=text))


def shown_list(admin: Console, query: str) -> str:
    """Return the list of the page as plain text."""
    return text_of(admin.get(f"/user/audit?{query}")).partition("Change Address")[2]


def test_entries_are_sentences_with_old_and_new_values(admin: Console) -> None:
    group_id = add_group("orders", "Orders")
    job_id = add_job(group_id, job_desc="nightly report")
    run = make_log(job_of(job_id))
    enter("job.start", ("job", job_id), {"trigger_next_time": T0})
    enter("log.kill", ("log", run.id), {"job_id": job_id})
    routes = [RouteStrategy.FIRST, RouteStrategy.ROUND]
    enter("job.update", ("job", job_id), {"executor_route_strategy": routes, "executor_timeout": [0, 30]})
    enter("job.update", ("job", job_id), {"retry_backoff_percent": [100, 200]})
    enter("job.update", ("job", job_id), {"schedule_conf": ["0 0 1 * * ?", "0 0 2 * * ?"]})
    enter("job.update", ("job", job_id), {"job_group": [77, group_id]})
    enter("group.update", ("group", group_id), {"access_token": ["***", "***"], "alarm_urls": [None, "***"]})
    enter("job.remove", ("job", 9_999), {"job_desc": "gone", "job_group": group_id})
    enter("job.ended", ("job", job_id), {"reason": "no next time"}, username="")
    enter("unheard.of", ("thing", 3), {"x": 1})
    page = shown_list(admin, "")
    for sentence in (
        f"ann switched on job {job_id} nightly report Next run: 2024-05-01",
        f"killed run {run.id} of job {job_id} nightly report",
        f"changed job {job_id} nightly report Route strategy: First → Round robin Timeout: none → 30 s",
        f"changed job {job_id} nightly report Backoff factor: 100% → 200%",
        f"changed the schedule of job {job_id} nightly report Schedule: 0 0 1 * * ? → 0 0 2 * * ?",
        f"moved job {job_id} nightly report to another executor Executor: 77 → Orders",
        "changed executor Orders Access token: changed Apprise URLs: set",
        "deleted job 9999 gone Executor: Orders",
        f"scheduler switched off job {job_id} nightly report , which has no further run",
        "unheard.of x: 1",
    ):
        assert sentence in page
    shown = admin.get("/user/audit").text
    assert f'href="/xxl-job-admin/jobinfo/{job_id}">job {job_id} nightly report</a>' in shown
    assert f'href="/xxl-job-admin/joblog/{run.id}">' in shown
    assert "/jobinfo/9999" not in shown, "a deleted job is not linked"
    own = text_of(admin.get(f"/jobinfo/{job_id}?tab=history"))
    assert f"ann changed the schedule of job {job_id} nightly report Schedule:" in own


def test_rights_are_in_words(admin: Console) -> None:
    orders, reports = add_group("orders", "Orders"), add_group("reports", "Reports")
    both = f"{orders},{reports}"
    restricted, unrestricted = str({orders: "view,operate"}), "{}"
    enter("user.add", ("user", 98), {"permission": both, "rights": restricted})
    enter("user.add", ("user", 97), {"role": 1, "permission": "", "rights": unrestricted})
    enter("user.update", ("user", 98), {"rights": [restricted, unrestricted]})
    enter(
        "user.update",
        ("user", 98),
        {"permission": [both, str(reports)], "rights": [restricted, unrestricted]},
    )
    enter("user.update", ("user", 98), {"rights": [unrestricted, str({orders: ""})]})
    enter("token.add", ("token", 1), {"name": "ci", "rights": "view,glue"})
    enter("token.add", ("token", 2), {"name": "all", "rights": "admin"})
    page = shown_list(admin, "")
    for words in (
        "Executor groups: Orders, Reports Rights: Orders: View, Operate · Reports: All",
        "Role: Administrator 2024",
        "user 98 Rights: Orders: View, Operate → Orders: All 2024",
        "Rights: Orders: View, Operate · Reports: All → Reports: All 2024",
        "user 98 Rights: Orders: All → Orders: none",
        "API token ci Rights: View, GLUE",
        "API token all Rights: Administration",
    ):
        assert words in page
    assert "{" not in page


def test_a_check_of_instances_is_in_words(admin: Console) -> None:
    enter("group.check", ("group", add_group("orders", "Orders")), {"addresses": 2, "answered": 1})
    assert "checked the instances of executor Orders Addresses: 2 Answered: 1" in shown_list(admin, "")


def test_failed_targets_of_alarms_are_in_the_readers_language(admin: Console) -> None:
    job_id = add_job(add_group())
    enter(
        "alarm.failed",
        ("job", job_id),
        {"channel Slack": "the channel refused the message or did not answer"},
    )
    enter("alarm.test", ("job", job_id), {"targets": ["mail ops@example.com", "channel Slack"]})
    page = admin.get("/user/audit", headers={"Accept-Language": "zh-CN"}).text
    assert "渠道 Slack" in page
    assert "渠道拒绝了消息或没有应答" in page
    assert "邮件 ops@example.com、渠道 Slack" in page


def job_of(job_id: int) -> Any:
    with read_scope() as session:
        return session.get(Job, job_id)


def test_the_filters_are_kept_in_chips(admin: Console) -> None:
    job_id = add_job(add_group())
    enter("job.stop", ("job", job_id), username="bob")
    enter("logout", ("user", 1), username="bob", at_ms=T0 + 1)
    assert "switched off job" in shown_list(admin, f"object=job&id={job_id}&username=bob&action=job.")
    assert shown_list(admin, f"object=job&id={job_id + 1}") == ""
    assert "logged out" in shown_list(admin, "action=login&username=bob")
    assert shown_list(admin, "username=bob&range=day") == ""
    assert "switched off" in shown_list(admin, "username=bob&from=2024-05-01T00:00&to=2024-05-02T00:00")
    chips = text_of(admin.get(f"/user/audit?object=job&id={job_id}&username=bob&action=job.stop&range=week"))
    for chip in (
        "Object: Job",
        f"ID: {job_id}",
        "User name: bob",
        "Action: switched off …",
        "Time: Last week",
    ):
        assert chip in chips


def test_values_of_users_stay_text(admin: Console) -> None:
    enter("user.add", ("user", 99), {"username": "<b>%(object)s</b>"}, username="<i>eve</i>")
    shown = admin.get("/user/audit").text
    assert "<b>%" not in shown
    assert "<i>eve" not in shown
    save(AuditEntry(at_ms=T0, action="job.update", object_type="job", object_id=1, changes='{"cut'))
    assert "changed job 1" in shown_list(admin, "")


def test_switches_and_times_are_in_words(admin: Console) -> None:
    with admin.app.test_request_context():
        assert (field_label("fill_parameter"), field_label("logical_ms")) == (
            "Fill in placeholders",
            "Logical time",
        )
        assert [value_text("fill_parameter", value) for value in (1, 0, True)] == ["yes", "no", "yes"]
        assert version_words.value("fill_parameter", False, {}) == "no"
