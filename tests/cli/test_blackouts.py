"""Commands ``blackouts``: list, add, end."""

from typing import Any

import pytest

from tests.cli.fake_api import FakeApi
from tests.support.cli import Run

GROUP = {"id": 3, "app_name": "shop", "title": "Shop"}
BLACKOUT = {
    "id": 5,
    "state": "on",
    "window": {"from": "2030-01-31T08:00:00.000Z", "to": None},
    "from": "2030-01-31T08:00:00.000Z",
    "to": None,
    "cron": None,
    "duration_s": None,
    "time_zone": None,
    "group_id": 3,
    "job_id": None,
    "tag": None,
    "name": "Shop",
    "afterwards": "skip",
    "reason": "moving",
    "author": "ann",
    "created_at": "2030-01-31T08:00:00.000Z",
    "ended_at": None,
}
OVER = {**BLACKOUT, "id": 4, "state": "over", "window": None, "to": "2030-01-31T09:00:00.000Z"}
WEEKLY = {"cron": "0 0 2 ? * SUN", "duration_s": 7200, "time_zone": "Asia/Tokyo"}
SUNDAYS = {**BLACKOUT, **WEEKLY, "id": 3, "group_id": None, "tag": "nightly"}


def test_blackouts_are_listed(api: FakeApi, run: Run) -> None:
    api.page("/blackouts", BLACKOUT, OVER, SUNDAYS)
    lines = run("blackouts", "list", "--state", "on").stdout.splitlines()
    assert lines[0].split() == ["ID", "STATE", "FROM", "TO", "RECURS", "FOR", "REASON"]
    assert lines[1].split()[:2] == ["5", "on"]
    assert lines[1].split()[-4:] == ["group", "3", "Shop", "moving"]
    assert len(lines[2].split()) == len(lines[1].split()) + 2, "the end of one that is over"
    assert "0 0 2 ? * SUN for 2h, Asia/Tokyo  tag nightly" in lines[3]
    assert api.seen[-1].query["state"] == "on"
    assert run("blackouts", "list", "-q").stdout == "5\n4\n3\n"


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ((), {}),
        (("--group", "shop", "--run-once"), {"group_id": 3, "afterwards": "run_once"}),
        (
            ("--cron", "0 0 2 ? * SUN", "--duration", "2h", "--time-zone", "UTC", "--tag", "nightly"),
            {"cron": "0 0 2 ? * SUN", "duration_s": 7200, "time_zone": "UTC", "tag": "nightly"},
        ),
        (
            ("--from", "2030-01-31T08:00:00Z", "--to", "2030-01-31T09:00:00Z"),
            {"from": "2030-01-31T08:00:00.000+00:00", "to": "2030-01-31T09:00:00.000+00:00"},
        ),
    ],
)
def test_a_blackout_is_added(api: FakeApi, run: Run, options: tuple[str, ...], body: dict[str, Any]) -> None:
    api.page("/groups", GROUP)
    api.on("POST", "/blackouts", BLACKOUT)
    ended = run("blackouts", "add", "--reason", "moving", *options)
    assert ended.stdout == "blackout 5: on until it is ended\n"
    assert api.seen[-1].body == {"afterwards": "skip", "reason": "moving", **body}


def test_one_is_ended_and_a_reason_is_needed(api: FakeApi, run: Run) -> None:
    api.on("POST", "/blackouts/5/end", OVER)
    assert run("blackouts", "end", "5").stdout == "blackout 5: ended\n"
    assert run("blackouts", "add").exit_code == 2
    recurring = run("blackouts", "add", "--reason", "moving", "--cron", "0 0 2 ? * SUN")
    assert (recurring.exit_code, "go together" in recurring.stderr) == (2, True)
