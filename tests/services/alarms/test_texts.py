"""Texts of alarms about several runs: how many of them failed, are unresolved, or have ended well since."""

import pytest

from app.models.alarm import Alarm
from app.models.job import Job
from app.models.log import JobLog
from app.services.alarms.texts import compose
from app.settings.config import Config
from tests.support.factories import T0

JOB = Job(id=7, job_desc="Nightly report", job_group=1)
FAILED, UNRESOLVED, LATE_SUCCESS, LATE_FAILURE = (200, 500), (504, 0), (504, 200), (504, 500)


def runs_of(*codes: tuple[int, int]) -> list[JobLog]:
    return [
        JobLog(id=number, trigger_time=T0, trigger_code=trigger_code, handle_code=handle_code, killed=0)
        for number, (trigger_code, handle_code) in enumerate(codes, 1)
    ]


def alarms_of(*reasons: str) -> list[Alarm]:
    return [Alarm(log_id=number, job_id=7, reason=reason) for number, reason in enumerate(reasons, 1)]


@pytest.mark.parametrize(
    ("codes", "counted"),
    [
        ([FAILED], "1 run failed"),
        ([UNRESOLVED], "1 run unresolved"),
        ([UNRESOLVED, UNRESOLVED], "2 runs unresolved"),
        ([FAILED] * 4 + [UNRESOLVED], "4 runs failed, 1 unresolved"),
        ([UNRESOLVED, LATE_FAILURE], "1 run failed, 1 unresolved"),
        ([UNRESOLVED, LATE_SUCCESS, FAILED], "1 run failed, 1 succeeded late, 1 unresolved"),
        ([LATE_SUCCESS], "1 run succeeded late"),
    ],
)
def test_runs_are_counted_by_how_they_ended(
    config: Config, codes: list[tuple[int, int]], counted: str
) -> None:
    alarms = alarms_of(*("unresolved" if trigger_code == 504 else "failed" for trigger_code, _ in codes))
    message = compose(JOB, None, alarms, runs_of(*codes), config)
    assert message.title == f"[Duetime] Nightly report (job 7): {counted}"
    known = f"{counted}: unknown whether it ran" if UNRESOLVED in codes else counted
    assert message.body.splitlines()[2] == known
    assert message.facts["runs"] == len(codes)


@pytest.mark.parametrize(
    ("host", "link"), [("jobs.lan", "http://jobs.lan:8080/admin"), ("::1", "http://[::1]:8080/admin")]
)
def test_links_lead_to_host_and_port_without_a_public_url(host: str, link: str) -> None:
    config = Config(host=host, context_path="/admin")
    message = compose(JOB, None, alarms_of("failed"), runs_of(FAILED), config)
    assert f"{link}/joblog/logDetailPage?id=1" in message.body


def test_the_newest_run_that_has_not_ended_well_stands_for_all(config: Config) -> None:
    message = compose(
        JOB,
        None,
        alarms_of("failed", "unresolved", "unresolved"),
        runs_of(FAILED, UNRESOLVED, LATE_SUCCESS),
        config,
    )
    assert (message.facts["run"], message.facts["state"]) == (2, "unresolved")


def test_runs_cleared_from_the_log_are_counted_as_their_alarms(config: Config) -> None:
    message = compose(JOB, None, alarms_of("failed", "unresolved", "failed"), runs_of(FAILED), config)
    assert message.title.endswith(": 2 runs failed, 1 unresolved")
    assert "\n2 of them cleared from the log\n" in message.body
    message = compose(JOB, None, alarms_of("failed"), [], config)
    assert message.title.endswith(": 1 run failed")
    assert "\ncleared from the log\n" in message.body
    assert (message.facts["run"], message.facts["state"], message.facts["runs"]) == (None, "failed", 1)
