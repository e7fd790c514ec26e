"""Pages of incidents: list by state, filters, rights, one incident with its timeline, acknowledging it."""

import json
from collections.abc import Callable

import pytest

from app.clock import MINUTE_MS, now_ms
from app.domain.access.permissions import Right
from app.domain.enums import AlarmState, IncidentState, MessageStep
from app.models.audit import AuditEntry
from app.models.promise import Incident
from app.services.promises.incidents import REPORTED_AS_FAILURE
from tests.console.pages import path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import all_rows, only_row
from tests.support.promises import make_incident, make_message, make_promise

pytestmark = pytest.mark.databases("sqlite")

VIEWER = frozenset({Right.VIEW})
OPERATOR = VIEWER | {Right.OPERATE}
OVER = {"state": IncidentState.KEPT_AGAIN.value}


def test_open_incidents_come_first_and_others_by_state(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, job_desc="nightly")
    make_incident(job_id, group_id)
    acknowledged = {"state": "acknowledged", "acknowledged_by": "ann", "acknowledged_ms": now_ms()}
    make_incident(
        job_id, group_id, {"kind": "finishes_by", "at": "06:00+1d"}, logical_ms=1_000, **acknowledged
    )
    make_incident(
        job_id, group_id, {"kind": "takes_at_most", "s": 600}, logical_ms=2_000, ended_ms=now_ms(), **OVER
    )
    text = text_of(admin.get("/incidents"))
    assert "Open 1 Acknowledged 1 Kept again" in text
    assert f"not started within 1 min {job_id} nightly" in " ".join(text.split())
    assert "06:00" not in text
    assert "takes longer than 10 min" not in text
    by_others = text_of(admin.get("/incidents?state=acknowledged"))
    assert "not succeeded by 06:00 of the next day" in by_others
    assert "Acknowledged by ann" in by_others
    everything = text_of(admin.get("/incidents?state=all"))
    assert "Kept again" in everything
    assert "not started within 1 min" in everything


def test_the_menu_has_the_number_of_open_incidents(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    assert 'aria-label="Incidents"' in admin.get("/help").text
    make_incident(job_id, group_id)
    make_incident(job_id, group_id, logical_ms=1_000, **OVER)
    assert 'aria-label="Incidents, 1 open"' in admin.get("/help").text


def test_an_empty_list_says_what_promises_are(admin: Console) -> None:
    job_id = add_job(add_group())
    text = text_of(admin.get("/incidents"))
    assert "No job promises anything yet" in text
    assert "in the form of a job" in text
    make_promise(job_id)
    assert "No incident is open" in text_of(admin.get("/incidents"))


def test_a_search_is_an_executor_a_state_or_a_job(admin: Console) -> None:
    group_id, other_id = add_group(), add_group("other-app", "Other")
    job_id, other_job = add_job(group_id, job_desc="nightly"), add_job(other_id, job_desc="hourly")
    make_incident(job_id, group_id)
    make_incident(other_job, other_id)
    for typed, expected in (
        ("nightly", f"jobId={job_id}"),
        (str(job_id), f"jobId={job_id}"),
        ("executor:other-app", f"jobGroup={other_id}"),
        ("state:kept-again", "state=kept_again"),
    ):
        answer = admin.get("/incidents", query_string={"q": typed})
        assert expected in answer.headers.get("Location", ""), typed
    text = text_of(admin.get(f"/incidents?jobGroup={other_id}"))
    assert "hourly" in text
    assert "nightly" not in text
    assert "No job matches" in text_of(admin.get("/incidents?q=weekly"))


def test_a_long_list_goes_on_with_older_ones(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.promises.lists.SHOWN", 2)
    group_id = add_group()
    job_id = add_job(group_id)
    ids = [make_incident(job_id, group_id, logical_ms=number * MINUTE_MS).id for number in range(3)]
    page = admin.get("/incidents").text
    assert f"before={ids[1]}" in page
    older = admin.get(f"/incidents?before={ids[1]}").text
    assert f"/incidents/{ids[0]}" in older
    assert f"/incidents/{ids[2]}" not in older


def test_an_incident_has_its_facts_and_who_was_told_when(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, job_desc="nightly")
    incident = make_incident(job_id, group_id, log_id=77)
    answers = json.dumps({"mail ann@example.com": "ok", "channel pager": "HTTP 500"})
    make_message(incident, MessageStep.OPENED, AlarmState.PARTLY, outcome=answers)
    make_message(incident, MessageStep.ESCALATED, AlarmState.PENDING, next_ms=now_ms() + MINUTE_MS)
    page = admin.get(f"/incidents/{incident.id}")
    text = text_of(page)
    assert "not started within 1 min" in text
    assert "starts within 1 min" in text
    assert "Run 77" in text
    assert "mail ann@example.com sent" in text
    assert "channel pager : HTTP 500" in text or "channel pager: HTTP 500" in text
    assert "planned, unless it is acknowledged before" in text
    assert f"/jobinfo/{job_id}" in page.text
    without = make_incident(job_id, group_id, logical_ms=1_000)
    assert "no run" in text_of(admin.get(f"/incidents/{without.id}"))


def test_acknowledging_ends_the_planned_escalation_and_is_audited(admin: Console) -> None:
    group_id = add_group()
    incident = make_incident(add_job(group_id, job_desc="nightly"), group_id)
    make_message(incident, MessageStep.ESCALATED, AlarmState.PENDING, next_ms=now_ms() + MINUTE_MS)
    path = f"/incidents/{incident.id}"
    assert "Acknowledge</button>" in admin.get(path).text
    answer = submit(admin, f"{path}/acknowledge")
    text = text_of(admin.get(path_after(answer)))
    assert "Acknowledged" in text
    assert "by admin" in text
    assert "planned" not in text
    assert "Acknowledge</button>" not in admin.get(path).text
    assert only_row(Incident).state == "acknowledged"
    assert [entry.action for entry in all_rows(AuditEntry)][-1] == "incident.acknowledge"
    assert "acknowledged an incident of job" in text_of(admin.get("/user/audit"))


def test_an_incident_that_ended_says_when_and_how(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    over = make_incident(job_id, group_id, ended_ms=now_ms(), **OVER)
    assert "Kept again" in text_of(admin.get(f"/incidents/{over.id}"))
    gone = make_incident(job_id, group_id, logical_ms=1_000, state="withdrawn", ended_ms=now_ms())
    assert "The job or the promise was removed." in text_of(admin.get(f"/incidents/{gone.id}"))


def test_only_groups_that_a_user_may_view_and_operate(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id, other_id = add_group(), add_group("other-app", "Other")
    incident = make_incident(add_job(group_id, job_desc="mine"), group_id)
    foreign = make_incident(add_job(other_id, job_desc="theirs"), other_id)
    viewer = normal_user(group_id, rights={group_id: VIEWER})
    text = text_of(viewer.get("/incidents"))
    assert "mine" in text
    assert "theirs" not in text
    assert viewer.get(f"/incidents/{foreign.id}").status_code == 404
    assert "Acknowledge</button>" not in viewer.get(f"/incidents/{incident.id}").text
    assert submit(viewer, f"/incidents/{incident.id}/acknowledge").status_code == 403
    for number in (2**62, 2**64):
        assert admin.get(f"/incidents/{number}").status_code == 404
        assert submit(admin, f"/incidents/{number}/acknowledge").status_code == 404


def test_messages_that_were_not_sent_say_why(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)

    def page_of(logical_ms: int, *messages: tuple[MessageStep, str | None]) -> str:
        incident = make_incident(job_id, group_id, logical_ms=logical_ms, ended_ms=now_ms(), **OVER)
        for step, outcome in messages:
            make_message(incident, step, AlarmState.SILENT, outcome=outcome)
        return text_of(admin.get(f"/incidents/{incident.id}"))

    reported = page_of(1_000, (MessageStep.OPENED, json.dumps({"": REPORTED_AS_FAILURE})))
    assert "not sent: the failed run has been reported already" in reported
    assert "no channel configured" in page_of(2_000, (MessageStep.OPENED, "{}"))
    muted = page_of(
        3_000, (MessageStep.OPENED, None), (MessageStep.ESCALATED, None), (MessageStep.KEPT_AGAIN, None)
    )
    assert "not sent: kept again before the end of a mute" in muted
    assert "Escalation" not in muted
    assert "Message that it is kept again" not in muted
