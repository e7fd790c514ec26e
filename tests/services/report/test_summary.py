"""Summary of now: counts of what the reader may see."""

from app.clock import DAY_MS
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right
from app.models.group import Group
from app.models.registry import Registration
from app.services.report.reporting import midnight_ms
from app.services.report.summary import Summary, summarize
from app.settings.config import Config
from app.store.runs import reporting
from app.store.runs.day_counts import DayCount
from app.store.runs.reporting import Counts
from tests.support.console import ACTOR
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_due_job,
    make_fire,
    make_job,
    make_run,
    save,
)

CONFIG = Config.from_env({}, dotenv=None)


def summary(actor: Actor) -> Summary:
    with read_scope() as session:
        return summarize(session, actor, config=CONFIG, now_ms=T0)


def test_the_summary_counts_what_a_reader_may_see(database: str) -> None:
    assert summary(ACTOR) == Summary(0, 0, 0, 0, 0, None, 0, DayCount("", 0, 0, 0), scheduling=False)
    job, other = make_due_job(T0 + 60_000), make_job(addresses=SECOND)
    make_run(job)
    make_fire(job, due_time=T0 - 5_000)
    make_run(other)
    (group,) = all_rows(Group, id=other.job_group)
    for address, age_ms in ((FIRST, 0), (SECOND, 60_000)):
        beat = {"registry_group": "EXECUTOR", "registry_key": group.app_name, "registry_value": address}
        save(Registration(**beat, update_time=T0 - age_ms))
    with session_scope() as session:
        for back in (0, 1):
            day_ms = midnight_ms(T0, CONFIG.time_zone, back)
            counts = {job.job_group: Counts(1, 2 + back, 3), other.job_group: Counts(1, 0, 0)}
            reporting.save_report(session, day_ms, counts, now_ms=T0 - DAY_MS * back)
    found = summary(ACTOR)
    assert (found.groups, found.jobs, found.enabled, found.online) == (2, 2, 1, 1)
    assert (found.waiting, found.oldest_waiting_ms, found.running) == (1, T0 - 5_000, 2)
    assert (found.today.success, found.today.failed, found.today.running) == (2, 3, 2)
    eve = Actor(7, "eve", is_admin=False, rights={other.job_group: frozenset({Right.VIEW})})
    assert summary(eve) == Summary(
        1, 1, 0, 1, 0, None, 1, DayCount(found.today.day, 0, 0, 1), scheduling=False
    )
