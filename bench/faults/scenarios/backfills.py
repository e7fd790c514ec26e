"""Scenario ``backfills``: while everything is killed, backfills run each of their instants once, in order.

Two executors of our own client. Live jobs with a cron, and jobs whose switch is off. A script makes backfills
of both over the API, pauses, resumes and cancels them. With ``--instants``: one backfill of so many, faults
until it is done.
"""

import argparse
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS
from bench.faults.api import Api, api_of
from bench.faults.backfills_checker import Asked, Pause, Story, check_backfills
from bench.faults.checker import Watched, check
from bench.faults.installation import clock_ms, database
from bench.faults.judging import settled_history, verdict
from bench.faults.scenarios.random_faults import has_recovered
from bench.faults.site import CLIENTS, OWN, Site
from bench.faults.storm import Storm
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

#: pause between two faults, two acts of the script, and two attempts at a request
GAP_S, ACT_S, AGAIN_S = (1.0, 5.0), (0.2, 0.8), 0.3
SETTLE_S = 240
#: one long backfill: longest time of it, and of a part of the storm
LONG_S, PART_S = 3_600, 20.0
#: so many may be active at once
ACTIVE_MAX = 8
#: earlier than all runs of schedules
BASE_DAYS = 3
SECONDLY, MINUTELY = "* * * * * ?", "0 * * * * ?"
OFF = {"schedule": MINUTELY, "enabled": False}
#: live job -> its members
LIVE: dict[str, dict[str, Any]] = {
    "second": {"handler": "ok", "param": "0.05", "schedule": SECONDLY},
    "five": {"handler": "flaky", "param": "0.1 0.2", "schedule": "0/5 * * * * ?"},
    "limited": {"handler": "ok", "param": "0.4", "schedule": "0/2 * * * * ?", "max_running": 2},
}
#: other job -> its members
JOBS: dict[str, dict[str, Any]] = {
    "plain": {"handler": "ok", "param": "0.1"} | OFF,
    "retried": {"handler": "flaky", "param": "0.1 0.4", "retry_count": 2} | OFF,
    "child": {"handler": "ok", "schedule_type": "NONE"},
    "root": {"handler": "flaky", "param": "0.1 0.15", "retry_count": 1} | OFF,
    "follower": {"handler": "ok", "schedule_type": "NONE"},
    "many": {"handler": "ok", "schedule": SECONDLY, "enabled": False},
}
BACKFILLED = ("second", "five", "limited", "plain", "retried", "root")
OPEN = """
    SELECT (SELECT COUNT(*) FROM xxl_job_fire)
        + (SELECT COUNT(*) FROM xxl_job_round WHERE state = 'open' OR due_ms > 0) AS n
"""
ACTIVE, ENDED = ("running", "paused", "stopping", "cancelling"), ("done", "cancelled")


@dataclass(eq=False)
class Script(threading.Thread):
    """Makes and changes backfills until it is stopped, then sees them to their end."""

    api: Api
    ids: Mapping[str, int]
    asked: dict[int, Asked] = field(default_factory=dict)
    pauses: list[Pause] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: backfill -> when its pause was answered
    paused_ms: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self.number = 0

    def run(self) -> None:
        dice, acts = self.api.dice, (self._start, self._pause, self._resume, self._cancel)
        while not self.stopped.wait(dice.uniform(*ACT_S)):
            dice.choices(acts, (0.4, 0.25, 0.25, 0.1))[0]()

    def finish(self) -> bool:
        """Resume what is paused or has failed, or cancel it; return whether all have ended."""
        listed = self._list()
        for row in listed:
            if row["state"] in ("paused", "failed"):
                may_cancel = len(self.asked) > 1 and self.api.dice.random() < 0.1
                self._cancel_one(row["id"]) if may_cancel else self._resume_one(row["id"])
        return bool(listed) and all(row["state"] in ENDED for row in listed)

    def start_one(self, name: str, body: Mapping[str, Any], *, is_new_range: bool) -> None:
        """Ask for a backfill; another one may have the range, unless it is new."""
        times = {side: datetime.fromtimestamp(body[side] / 1000, UTC).isoformat() for side in ("from", "to")}
        status, answer = self._call(f"/jobs/{self.ids[name]}/backfills", {**body, **times})
        if status == 202:
            cron = (LIVE | JOBS)[name]["schedule"] if is_new_range else ""
            follower_id = self.ids["follower"] if name == "root" else 0
            self.asked[answer["id"]] = Asked(
                self.ids[name], cron, body["from"], body["to"], follower_id=follower_id
            )
        elif status != 409 or is_new_range:
            self.errors.append(f"answer {status} to {body}: {answer}")

    def _start(self) -> None:
        if sum(row["state"] in ACTIVE for row in self._list()) >= ACTIVE_MAX:
            return
        dice, name = self.api.dice, self.api.dice.choice(BACKFILLED)
        is_new_range = name not in LIVE or dice.random() < 0.7
        self.number += 1
        from_ms = clock_ms() // DAY_MS * DAY_MS - (BASE_DAYS + self.number) * DAY_MS
        to_ms = from_ms + dice.randint(3, 60) * (MINUTE_MS if name in JOBS else SECOND_MS)
        if not is_new_range:
            to_ms = clock_ms() // SECOND_MS * SECOND_MS
            from_ms = to_ms - 20 * SECOND_MS
        body = {
            "from": from_ms,
            "to": to_ms,
            "which": dice.choice(("all", "all", "missing"))
            if is_new_range
            else dice.choice(("all", "failed")),
            "order": dice.choice(("oldest_first", "newest_first")),
            "max_running": dice.choice((1, 1, 3, 20)),
            "children": dice.choice(("none", "as_configured", "chain")) if name == "root" else "none",
            "on_failure": dice.choice(("stop", "go_on")),
        }
        self.start_one(name, body, is_new_range=is_new_range)

    def _pause(self) -> None:
        running = [row["id"] for row in self._list() if row["state"] == "running"]
        if not running:
            return
        backfill_id = self.api.dice.choice(running)
        status, answer = self._call(f"/backfills/{backfill_id}/pause")
        if status == 200 and answer["state"] == "paused":
            self.paused_ms[backfill_id] = clock_ms()
        self._expect(status, answer)

    def _resume(self) -> None:
        resting = [row["id"] for row in self._list() if row["state"] in ("paused", "failed")]
        if resting:
            self._resume_one(self.api.dice.choice(resting))

    def _resume_one(self, backfill_id: int) -> None:
        since_ms = self.paused_ms.pop(backfill_id, None)
        if since_ms is not None:
            self.pauses.append(Pause(backfill_id, since_ms, clock_ms()))
        self._expect(*self._call(f"/backfills/{backfill_id}/resume"))

    def _cancel(self) -> None:
        listed = [row["id"] for row in self._list() if row["state"] not in ENDED]
        if listed:
            self._cancel_one(self.api.dice.choice(listed))

    def _cancel_one(self, backfill_id: int) -> None:
        self._expect(*self._call(f"/backfills/{backfill_id}/cancel", {}))

    def _expect(self, status: int, answer: Any) -> None:
        if status not in (200, 409):  # 409: it has ended meanwhile
            self.errors.append(f"answer {status}: {answer}")

    def _list(self) -> list[dict[str, Any]]:
        answer = self.api("GET", "/backfills?limit=200")
        return list(answer[1]["items"]) if answer is not None and answer[0] == 200 else []

    def _call(self, path: str, body: Any = None) -> tuple[int, Any]:
        """Post until there is an answer, also after the stop."""
        self.number += 1
        key = f"backfills-{self.number}"
        while (answer := self.api("POST", path, body, key)) is None or answer[0] >= 500:
            self.stopped.wait(AGAIN_S) if not self.stopped.is_set() else time.sleep(AGAIN_S)
        return int(answer[0]), answer[1]


def backfills(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Consoles, schedulers, executors and the database are killed while backfills run beside live jobs."""
    with database(db, folder) as (url, server):
        migrate(url)
        site = Site(Cluster(folder, url), options.seed, (OWN,))
        try:
            site.start(1 if server is None else 2)
            api = api_of(site.cluster, options.seed)
            ids, started = _add_jobs(site.cluster, api)
            away = server if options.away else None
            storm = Storm(site.cluster, random.Random(options.seed), site.starters, away, gap_s=GAP_S)
            script = Script(api, ids)
            counts = _run_long(site, storm, script, options) if options.instants else None
            if counts is None:
                counts = _run_many(site, storm, script, options.seconds)
            watched = _stop_live(api, ids, started)
            return {"faults": dict(storm.counts), **counts, **_verdict(site.cluster, script, watched)}
        finally:
            site.stop()


def _run_many(site: Site, storm: Storm, script: Script, seconds: float) -> dict[str, Any]:
    """Let the script make backfills while there are faults, then wait for their ends."""
    script.start()
    storm.rage(seconds)
    script.stopped.set()
    eventually(partial(has_recovered, site, storm), 60, "the console is back")
    script.join(60)
    assert not script.errors, script.errors
    eventually(script.finish, SETTLE_S, "all backfills have ended")
    return {"answers": dict(script.api.answers)}


def _run_long(site: Site, storm: Storm, script: Script, options: argparse.Namespace) -> dict[str, Any]:
    """Make one backfill, with faults for so many seconds or until it is done; return its rate."""
    from_ms = clock_ms() // DAY_MS * DAY_MS - BASE_DAYS * DAY_MS
    to_ms = from_ms + options.instants * SECOND_MS
    order = script.api.dice.choice(("oldest_first", "newest_first"))
    body = {"from": from_ms, "to": to_ms, "max_running": options.max_running, "order": order}
    began_s = time.monotonic()
    script.start_one("many", body, is_new_range=True)
    while time.monotonic() - began_s < options.seconds and not script.finish():
        storm.rage(PART_S)
    eventually(partial(has_recovered, site, storm), 60, "the console is back")
    eventually(script.finish, LONG_S, "the backfill is done")
    took_s = time.monotonic() - began_s
    figures = {"max_running": options.max_running, "order": order, "took_s": round(took_s, 1)}
    return figures | {"per_s": round(options.instants / took_s, 1)}


def _add_jobs(cluster: Cluster, api: Api) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Return job ids, and the clock before and after each live one was made."""
    group_id = cluster.console.add_group(OWN)
    cluster.console.await_addresses(group_id, len(CLIENTS))
    common = {"group_id": group_id, "owner": "storm", "route_strategy": "ROUND", "enabled": True}
    ids: dict[str, int] = {}
    started = {}
    for name, members in (JOBS | LIVE).items():
        body = common | {"description": name, "schedule_type": "CRON"} | members
        if body["schedule_type"] == "NONE":
            body["enabled"] = False
        if name == "root":
            body["children"] = [ids["child"]]
        if name == "follower":
            body["runs_after"] = {"jobs": [ids["root"]]}
        before_ms = clock_ms()
        status, answer = api("POST", "/jobs", body)
        assert status == 201, answer
        ids[name] = answer["id"]
        started[name] = (before_ms, clock_ms())
    return ids, started


def _stop_live(api: Api, ids: Mapping[str, int], started: Mapping[str, tuple[int, int]]) -> list[Watched]:
    watched = []
    for name, members in LIVE.items():
        before_ms = clock_ms()
        status, answer = api("PATCH", f"/jobs/{ids[name]}", {"enabled": False})
        assert status == 200, answer
        stopped = before_ms, clock_ms()
        watched.append(Watched(ids[name], "CRON", members["schedule"], started[name], stopped))
    return watched


def _has_ended(cluster: Cluster) -> bool:
    try:
        return not cluster.select(OPEN)[0]["n"]
    except DBAPIError:
        return False


def _verdict(cluster: Cluster, script: Script, watched: list[Watched]) -> dict[str, Any]:
    eventually(partial(_has_ended, cluster), SETTLE_S, "all that follows has ended")
    history, settled_s = settled_history(cluster, watched, SETTLE_S)
    found = check(history)
    result = verdict(cluster, history, found)
    story = Story.read(cluster.engine(), script.asked, script.pauses, history.events)
    check_backfills(story)
    found.violations += [*script.errors, *story.problems]
    return result | {"settled_s": settled_s, "backfills": dict(story.counts)} | found.report()
