"""Scenario ``blackouts``: while everything is killed, nothing runs that a blackout or a calendar covers.

Two executors of our own client; jobs of each schedule, one with retries, one with a limit, four with a
calendar. A script makes and ends blackouts, changes the calendar and triggers runs over the API.
"""

import argparse
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from app.domain.runs.trigger_keys import parse_id
from app.domain.schedules.schedule import RESTING
from bench.faults.api import Api, api_of
from bench.faults.blackouts_checker import Story, Subject, check_blackouts
from bench.faults.checker import check
from bench.faults.installation import clock_ms, database
from bench.faults.judging import settled_history, verdict
from bench.faults.scenarios.random_faults import has_recovered
from bench.faults.site import CLIENTS, OWN, Site
from bench.faults.storm import Storm
from tests.acceptance.cluster import Cluster
from tests.support.databases import migrate
from tests.support.eventually import eventually

#: pause between two faults, two changes, two triggers, and two attempts at a request
GAP_S, CHANGE_S, TRIGGER_S, AGAIN_S = (1.0, 5.0), (0.2, 0.9), 0.3, 0.3
#: length of a blackout
LENGTH_S = (3, 20)
SAMPLE_S, WARM_S, SETTLE_S = 0.2, 8.0, 240
#: nothing waits for a blackout, or rests, so long after the last one
RESUMED_S = 5.0
CALENDAR, TAG = "storm", "dark"
OK, FLAKY = {"handler": "ok", "param": "0.1"}, {"handler": "flaky", "param": "0.1 0.4", "retry_count": 2}
ONCE = "FIRE_ONCE_NOW"
#: job -> its members
JOBS: dict[str, dict[str, Any]] = {
    "second": OK | {"schedule": "* * * * * ?", "tags": [TAG]},
    "catching up": OK | {"schedule": "* * * * * ?", "misfire_strategy": ONCE},
    "even": OK | {"schedule": "0/2 * * * * ?", "tags": [TAG]},
    "retried": FLAKY | {"schedule": "0/5 * * * * ?", "misfire_strategy": ONCE},
    "rate": OK | {"schedule_type": "FIX_RATE", "schedule": "1", "tags": [TAG]},
    "delay": {"handler": "ok", "param": "0.5", "schedule_type": "FIX_DELAY", "schedule": "1"},
    "limited": {"handler": "ok", "param": "3", "schedule": "0/2 * * * * ?", "max_running": 1},
    "workdays": OK | {"schedule": "* * * * * ?", "calendar": {"name": CALENDAR, "on": "workdays"}},
    "holidays": OK | {"schedule": "0/3 * * * * ?", "calendar": {"name": CALENDAR, "on": "holidays"}},
    "rate on workdays": OK
    | {"schedule_type": "FIX_RATE", "schedule": "2", "calendar": {"name": CALENDAR, "on": "workdays"}},
    "moved": OK
    | {"schedule": "30 0/5 * * * ?", "calendar": {"name": CALENDAR, "on": "workdays", "otherwise": "next"}},
    "by hand": OK | {"schedule_type": "NONE"},
}
BLACKOUT_WAITS = "SELECT COUNT(*) AS n FROM xxl_job_fire WHERE waits_for = 'blackout'"
RESTS = f"SELECT COUNT(*) AS n FROM xxl_job_info WHERE trigger_status = 1 AND trigger_next_time = {RESTING}"


@dataclass(eq=False)
class Script(threading.Thread):
    """Loop of requests until it is stopped."""

    api: Api
    ids: Mapping[str, int]
    group_id: int

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self.errors: list[str] = []


class Changes(Script):
    """Makes and ends blackouts, changes the calendar, gives and takes tags."""

    def run(self) -> None:
        dice, acts = self.api.dice, (self._add, self._end, self._change_calendar, self._change_tags)
        while not self.stopped.wait(dice.uniform(*CHANGE_S)):
            dice.choices(acts, (0.5, 0.25, 0.17, 0.08))[0]()

    def _add(self) -> None:
        dice, now_s = self.api.dice, int(time.time())
        begin_s = now_s + dice.choice((0, 0, 0, 2, 4))
        end_s = begin_s + dice.randint(*LENGTH_S)
        body: dict[str, Any] = {"reason": "storm", "afterwards": dice.choice(("skip", "run_once"))}
        body["to"] = None if dice.random() < 0.15 else _instant(end_s)
        if begin_s > now_s:
            body["from"] = _instant(begin_s)
        if dice.random() < 0.25:  # Its windows begin anywhere, and are cut.
            body |= {"cron": f"{dice.randrange(60)} 0/2 * * * ?", "duration_s": 60, "time_zone": "UTC"}
            body["to"] = _instant(begin_s + 3 * LENGTH_S[1])
        scope = dice.choices(("all", "group", "tag", "job"), (0.06, 0.06, 0.28, 0.6))[0]
        scopes: dict[str, dict[str, Any]] = {
            "all": {},
            "group": {"group_id": self.group_id},
            "tag": {"tag": TAG},
            "job": {"job_id": dice.choice(list(self.ids.values()))},
        }
        body |= scopes[scope]
        self._expect(self.api("POST", "/blackouts", body), (201, 422))

    def _end(self) -> None:
        listed = self.api("GET", "/blackouts")
        if listed is not None and listed[0] == 200:
            lasting = [row for row in listed[1]["items"] if row["state"] != "over"]
            if lasting:
                row = self.api.dice.choice(lasting)
                self._expect(self.api("POST", f"/blackouts/{row['id']}/end"), (200, 409))

    def _change_calendar(self) -> None:
        self._expect(set_calendar(self.api), (200,))

    def _change_tags(self) -> None:
        tags = [TAG] if self.api.dice.random() < 0.5 else []
        self._expect(self.api("PATCH", f"/jobs/{self.ids['even']}", {"tags": tags}), (200,))

    def _expect(self, answer: Any, statuses: Sequence[int]) -> None:
        # 500 and 503: the database is away.
        if answer is not None and answer[0] not in (*statuses, 500, 503):
            self.errors.append(f"answer {answer}")


class Triggers(Script):
    """Runs jobs by hand: now, forced or not, and planned."""

    def __post_init__(self) -> None:
        super().__post_init__()
        #: keys of the triggers that were forced
        self.forced: set[int] = set()

    def run(self) -> None:
        number = 0
        while not self.stopped.wait(TRIGGER_S):
            dice, number = self.api.dice, number + 1
            body = dice.choice(({}, {}, {"force": True}, {"in_s": dice.randint(1, 8)}))
            name = dice.choice(("by hand", "even", "delay", "retried"))
            path = f"/jobs/{self.ids[name]}/runs"
            # An attempt goes on after the stop, until it is answered.
            while (answer := self.api("POST", path, body, f"storm-{number}")) is None or answer[0] >= 500:
                self.stopped.wait(AGAIN_S)
            if answer[0] == 202 and body.get("force"):
                self.forced.add(parse_id(answer[1]["id"]).number)  # type: ignore[union-attr]
            if answer[0] not in (202, 409) or (answer[0] == 409 and body.get("force")):
                self.errors.append(f"trigger {body}: {answer}")


@dataclass(eq=False)
class Watch(threading.Thread):
    """Notes when each blackout was first seen, and counts the runs that wait."""

    cluster: Cluster
    seen_ms: dict[int, int] = field(default_factory=dict)
    waited: int = 0
    rested: int = 0

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(SAMPLE_S):
            try:
                for row in self.cluster.select("SELECT id FROM xxl_job_blackout"):
                    self.seen_ms.setdefault(row["id"], clock_ms())
                self.waited += self.cluster.select(BLACKOUT_WAITS)[0]["n"]
                self.rested += self.cluster.select(RESTS)[0]["n"]
            except DBAPIError:
                continue


def blackouts(db: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Consoles, schedulers, executors and the database are killed while blackouts and a calendar change."""
    with database(db, folder) as (url, server):
        migrate(url)
        site = Site(Cluster(folder, url), options.seed, (OWN,))
        try:
            site.start(1 if server is None else 2)
            api = api_of(site.cluster, options.seed)
            group_id, ids, since_ms = _add_jobs(site.cluster, api)
            away = server if options.away else None
            storm = Storm(site.cluster, random.Random(options.seed), site.starters, away, gap_s=GAP_S)
            changes, triggers = Changes(api, ids, group_id), Triggers(api, ids, group_id)
            watch = Watch(site.cluster)
            for thread in (changes, triggers, watch):
                thread.start()
            storm.rage(options.seconds)
            changes.stopped.set()
            triggers.stopped.set()
            eventually(partial(has_recovered, site, storm), 60, "the console is back")
            changes.join(60)
            triggers.join(60)
            until_ms, problems = _come_to_rest(site.cluster, api, ids)
            watch.stopped.set()
            watch.join()
            subjects = _subjects(group_id, ids, since_ms, until_ms)
            problems += changes.errors + triggers.errors
            story_of = partial(Story.read, site.cluster.engine(), subjects, watch.seen_ms, triggers.forced)
            counts = {"waited": watch.waited, "rested": watch.rested, "answers": dict(api.answers)}
            return {"faults": dict(storm.counts), **counts, **_verdict(site.cluster, story_of, problems)}
        finally:
            site.stop()


def set_calendar(api: Api) -> Any:
    """Make today and the days beside it holidays or workdays."""
    kind, today = api.dice.choice(("workday", "holiday")), datetime.now(UTC).date()
    days = {(today + timedelta(offset)).isoformat(): kind for offset in (-1, 0, 1)}
    return api("PUT", f"/calendars/{CALENDAR}", {"days": days})


def _add_jobs(cluster: Cluster, api: Api) -> tuple[int, dict[str, int], int]:
    """Return group, job ids, and when all schedules were on."""
    group_id = cluster.console.add_group(OWN)
    cluster.console.await_addresses(group_id, len(CLIENTS))
    made = set_calendar(api)
    assert made[0] in (200, 201), made
    common = {"group_id": group_id, "owner": "storm", "route_strategy": "ROUND", "schedule_type": "CRON"}
    ids = {}
    for name, members in JOBS.items():
        is_scheduled = members.get("schedule_type") != "NONE"
        answer = api("POST", "/jobs", common | {"description": name, "enabled": is_scheduled} | members)
        assert answer[0] == 201, answer
        ids[name] = answer[1]["id"]
    return group_id, ids, clock_ms()


def _come_to_rest(cluster: Cluster, api: Api, ids: Mapping[str, int]) -> tuple[int, list[str]]:
    """End all blackouts, see everything go on, then switch the schedules off; return when, and problems."""
    time.sleep(WARM_S)
    over = 0
    while over < 2:  # An answer that was lost has made one, too.
        lasting = [row for row in api("GET", "/blackouts?limit=200")[1]["items"] if row["state"] != "over"]
        for row in lasting:
            api("POST", f"/blackouts/{row['id']}/end")
        over = 0 if lasting else over + 1
    problems = []
    for what, sql in (("runs still wait", BLACKOUT_WAITS), ("jobs still rest", RESTS)):
        try:
            eventually(partial(_is_none, cluster, sql), RESUMED_S)
        except AssertionError:
            problems.append(f"{cluster.select(sql)[0]['n']} {what}")
    time.sleep(RESUMED_S)
    until_ms = clock_ms()
    for name, job_id in ids.items():
        if JOBS[name].get("schedule_type") != "NONE":
            answer = api("PATCH", f"/jobs/{job_id}", {"enabled": False})
            assert answer[0] == 200, answer
    return until_ms, problems


def _is_none(cluster: Cluster, sql: str) -> bool:
    return not cluster.select(sql)[0]["n"]


def _subjects(group_id: int, ids: Mapping[str, int], since_ms: int, until_ms: int) -> list[Subject]:
    subjects = []
    for name, job_id in ids.items():
        rule = JOBS[name].get("calendar", {})
        is_plain = "schedule_type" not in JOBS[name] and "otherwise" not in rule
        cron = JOBS[name]["schedule"] if is_plain else ""
        on = "" if "otherwise" in rule else rule.get("on", "")
        subjects.append(Subject(job_id, group_id, cron, since_ms, until_ms, on))
    return subjects


def _verdict(cluster: Cluster, story_of: Any, problems: Sequence[str]) -> dict[str, Any]:
    history, settled_s = settled_history(cluster, (), SETTLE_S)
    found = check(history)
    result = verdict(cluster, history, found)  # binds the engine's zone
    story = story_of()
    check_blackouts(story)
    found.violations += [*problems, *story.problems]
    return result | {"settled_s": settled_s, "blackouts": dict(story.counts)} | found.report()


def _instant(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()
