"""Random calendars and blackouts over random days: nothing is unexplained, and nothing runs in a blackout.

Source: docs/reference/calendars.md, docs/reference/completeness.md.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.database.engine import read_scope, session_scope
from app.domain.calendars.blackouts import closure_at
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.errors import InvalidInput
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.calendars.explaining import tick_explained
from app.pipeline.calendars.pauses import resume
from app.pipeline.calendars.replanning import RuleReplanning
from app.services.jobs.replan import switch_off, switch_on
from app.store.calendars import rules
from tests.pipeline.calendar_steps import (
    ZONE,
    account_of,
    add_blackout,
    end_blackout,
    pass_time,
    put_calendar,
    ruled_job,
)
from tests.support.factories import T0, all_rows, make_group
from tests.support.plan import every_database

pytestmark = every_database

SCHEDULES = (
    ("CRON", "0/20 * * * * ?", ("skip",)),
    ("CRON", "0 0/30 * * * ?", ("skip",)),
    ("CRON", "0 0 3,9,15,21 * * ?", ("skip", "next", "previous")),
    ("CRON", "0 30 8 * * ?", ("skip", "next", "previous")),
    ("CRON", "15 7 * * *", ("next",)),
    ("FIX_RATE", "47", ("skip",)),
    ("FIX_RATE", "5000", ("skip",)),
)
STEPS = (
    1 * SECOND_MS,
    3 * SECOND_MS,
    4 * SECOND_MS,
    50 * SECOND_MS,
    20 * MINUTE_MS,
    5 * HOUR_MS,
    30 * HOUR_MS,
)


class World:
    """Jobs, calendars and blackouts, and a clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms: Millis = T0
        self.group = make_group(app_name="demo").id
        self.replanning = RuleReplanning(ZONE)
        self.open: list[int] = []
        self.put_calendar()
        self.jobs = [self._job(*each) for each in self.random.sample(SCHEDULES, 5)]
        self.switched_off: set[int] = set()

    def _job(self, kind: str, conf: str, otherwise: tuple[str, ...]) -> Job:
        rule = {"name": "cn", "on": self.random.choice(["workdays", "workdays", "holidays"])}
        rule["otherwise"] = self.random.choice(otherwise)
        first_ms = next_after_ms(Schedule(ScheduleType(kind), conf, ZONE), T0) or 0
        calendar = rule if self.random.random() < 0.7 else None
        group = self.group if self.random.random() < 0.5 else make_group().id
        strategy = self.random.choice(["DO_NOTHING", "FIRE_ONCE_NOW"])
        return ruled_job(first_ms, kind, conf, calendar=calendar, job_group=group, misfire_strategy=strategy)

    def put_calendar(self) -> None:
        today = datetime.fromtimestamp(self.now_ms / 1000, UTC).date()
        near = [today + timedelta(self.random.randint(-3, 12)) for _ in range(self.random.randint(0, 8))]
        days = {day.isoformat(): self.random.choice(["workday", "holiday"]) for day in near}
        put_calendar(days, now_ms=self.now_ms)

    def add_blackout(self) -> None:
        scope = self.random.choice(
            [{}, {"group_id": self.group}, {"job_id": self.random.choice(self.jobs).id}]
        )
        from_ms = self.now_ms + self.random.choice([0, 0, 2 * SECOND_MS, HOUR_MS])
        length_ms = self.random.choice([7 * SECOND_MS, MINUTE_MS, 3 * HOUR_MS, 2 * DAY_MS])
        until_ms = None if self.random.random() < 0.2 else from_ms // SECOND_MS * SECOND_MS + length_ms
        values = {**scope, "afterwards": self.random.choice(["skip", "run_once"])}
        if self.random.random() < 0.3:
            until_ms = None
            values |= {"cron": self.random.choice(["0 0 8 * * ?", "0 15 * * * ?"]), "duration_s": 1_200}
        self.open.append(add_blackout(from_ms, until_ms, now_ms=self.now_ms, **values))

    def end_blackout(self) -> None:
        if self.open:
            end_blackout(self.open.pop(self.random.randrange(len(self.open))), now_ms=self.now_ms)

    def switch(self) -> None:
        job = self.random.choice(self.jobs)
        with session_scope() as session:
            if job.id in self.switched_off:
                with suppress(InvalidInput):  # Blackouts may cover all that it has.
                    switch_on(session, [job.id], clock=lambda: self.now_ms)
                    self.switched_off.discard(job.id)
            elif session.get_one(Job, job.id).trigger_status:
                self.switched_off.add(job.id)
                switch_off(session, [job.id], clock=lambda: self.now_ms)

    def be_away(self) -> None:
        """Let time pass without a scheduler."""
        self.now_ms += self.random.choice(STEPS)

    def pass_time(self) -> None:
        self.now_ms += self.random.choice(STEPS) + self.random.choice([0, 0, 137])
        self.replanning.tick(self.now_ms)
        for _ in range(3):  # as the scan goes on with what it has not planned
            pass_time(self.now_ms)
        if self.random.random() < 0.5:
            tick_explained(self.now_ms)
        resume(now_ms=self.now_ms)

    def check(self) -> None:
        with read_scope() as session:
            history = rules.read_history(session, {"cn"}, since_ms=0)
        for job in self.jobs:
            tally = account_of(job, self.now_ms).tally
            assert (tally.unexplained, tally.unexpected) == (0, 0), (job.schedule_conf, tally)
            blackouts = history.blackouts_of(job.id, job.job_group)
            for run in all_rows(JobLog, job_id=job.id, trigger_type="CRON"):
                assert closure_at(blackouts, run.fire_time) is None, (job.schedule_conf, run.fire_time)


@pytest.mark.parametrize("seed", [*range(5), 14])
def test_everything_is_explained(database: str, seed: int) -> None:
    world = World(seed)
    steps: list[tuple[int, Callable[[], None]]] = [
        (10, world.pass_time),
        (3, world.be_away),
        (2, world.add_blackout),
        (2, world.end_blackout),
        (2, world.put_calendar),
        (1, world.switch),
    ]
    for _ in range(40):
        world.random.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()
    world.pass_time()
    world.check()
