"""End of a mute: the search for failing jobs, recoveries afterwards, nothing sent twice."""

from typing import Any

import pytest

from app.database.engine import session_scope
from app.models.alarm import Alarm
from app.models.job import Job
from app.models.mute import Mute
from app.services.alarms import muted_alarms
from app.services.alarms import notifier as alarm_service
from app.services.alarms.deliveries import RETRY_MS
from app.services.alarms.muted_alarms import EndedMute, when_text
from app.services.alarms.texts import compose_mute_end
from app.settings.config import Config
from app.store.alarms import recoveries as recovery_store
from tests.pipeline.steps import call_back
from tests.support.alarms import (
    HOUR,
    fail_run,
    hold_alarm,
    job_with_an_alarm_for_one_of_two,
    job_with_channels,
    messages,
    mute,
    notifying,
    states,
    take,
    tick_until,
    url_of,
)
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows, make_group, make_job, make_run, only_row, remove
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.plan import every_database

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), every_database]


def test_writers_are_not_blocked_by_the_search_for_failing_jobs(
    database: str, hook: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_with_channels(hook)
    mute(job)
    hold_alarm(job)
    find_successes = recovery_store.find_successes

    def slowly(*args: Any, **options: Any) -> dict[int, int]:
        mute(job, now_ms=T0 + HOUR + 1_000)
        return find_successes(*args, **options)

    monkeypatch.setattr(recovery_store, "find_successes", slowly)
    assert take("one", T0 + HOUR) == [], "muted again: there is nothing to report"
    assert (only_row(Alarm).mute_id, only_row(Mute).until_ms) == (only_row(Mute).id, T0 + 2 * HOUR + 1_000)


def test_muted_and_failing_jobs_do_not_delay_recoveries_of_others(
    database: str, config: Config, hook: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alarm_service, "RECOVERY_JOBS", 2)
    muted, failing = make_group(alarm_urls=url_of(hook)), make_group(alarm_urls=url_of(hook))
    of_both = [make_job(job_group=group.id) for group in (muted, muted, muted, failing, failing)]
    recovered = job_with_channels(hook, job_desc="fine again")
    for job in (*of_both, recovered):
        fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, *["SENT"] * 6)
        mute(group_id=muted.id, now_ms=T0 + 1_000)
        for job in (of_both[0], recovered):
            assert call_back(make_run(job).id, 200, now_ms=T0 + 2_000)
        notifier.tick(T0 + 10_000)
        assert states() == ["SENT"] * 6, "the first search covers other jobs"
        tick_until(notifier, T0 + 20_000, *["SENT"] * 5, "CLOSED")
        eventually(lambda: notifier.tick(T0 + 20_000) and len(hook.requests) == 7)
        assert call_back(make_run(of_both[3]).id, 200, now_ms=T0 + 21_000)
        tick_until(notifier, T0 + 30_000, *["SENT"] * 3, "CLOSED", "SENT", "CLOSED")
        eventually(lambda: notifier.tick(T0 + 30_000) and len(hook.requests) == 8)
    assert messages(hook)[6]["title"] == f"[Duetime] fine again (job {recovered.id}): recovered"


def test_notified_targets_get_the_recovery_while_others_keep_failing(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    with FakeExecutor() as broken, notifying(config) as notifier:
        broken.respond("*", Answer(status=500), Answer())
        job = job_with_channels(hook, broken)
        mute(job)
        fail_run(job)
        tick_until(notifier, T0, "MUTED")
        tick_until(notifier, T0 + HOUR, "SENT")
        assert only_row(Mute).next_ms == T0 + HOUR + RETRY_MS
        assert call_back(make_run(job).id, 200, now_ms=T0 + HOUR + 1_000)
        notifier.tick(T0 + HOUR + 20_000)
        assert states() == ["SENT"], "the summary comes first"
        eventually(lambda: notifier.tick(T0 + HOUR + RETRY_MS) and all_rows(Mute) == [])
        tick_until(notifier, T0 + HOUR + RETRY_MS + 10_000, "CLOSED")
        eventually(lambda: (len(hook.requests), len(broken.requests)) == (2, 2))
    assert [message["title"].partition(": ")[2] for message in messages(hook)] == [
        "no longer muted, still failing",
        "recovered",
    ]


@pytest.mark.parametrize("order", ["by itself", "behind a later alarm"])
def test_a_target_that_has_an_alarm_muted_since_gets_the_recovery(
    database: str, config: Config, hook: FakeExecutor, order: str
) -> None:
    with FakeExecutor() as broken, notifying(config) as notifier:
        job = job_with_an_alarm_for_one_of_two(notifier, hook, broken)
        mute(job, now_ms=T0 + 1_000)
        if order == "behind a later alarm":
            fail_run(job, T0 + 2_000)
            make_due_first(all_rows(Alarm)[1])
        tick_until(notifier, T0 + RETRY_MS, *["MUTED"] * len(all_rows(Alarm)))
        assert call_back(make_run(job).id, 200, now_ms=T0 + RETRY_MS + 1_000)
        eventually(lambda: notifier.tick(T0 + HOUR + 1_000) and all_rows(Mute) == [])
        eventually(lambda: notifier.tick(T0 + HOUR + 20_000) and len(hook.requests) == 2)
    assert messages(hook)[1]["title"].endswith("recovered")
    assert states()[0] == "CLOSED"


def make_due_first(alarm: Alarm) -> None:
    with session_scope() as session:
        session.merge(alarm).next_ms = 0


def test_alarms_summed_up_before_muting_again_are_not_repeated(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    mute(group_id=job.job_group)
    summed_up = hold_alarm(job)
    (ended,) = take("one", T0 + HOUR)
    mute(group_id=job.job_group, now_ms=T0 + HOUR + 1_000)
    later = hold_alarm(job)
    with session_scope() as session:
        muted_alarms.put_off(session, ended, outcome="{}", next_ms=0)
        muted_alarms.finish(session, ended, is_sent=True, outcome="{}", lease_until=0)
    states_by_run = {alarm.log_id: (alarm.state, alarm.mute_id) for alarm in all_rows(Alarm)}
    assert states_by_run == {summed_up.id: ("SENT", None), later.id: ("MUTED", only_row(Mute).id)}
    with notifying(config) as notifier:
        assert call_back(make_run(job).id, 200, now_ms=T0 + HOUR + 2_000)
        eventually(lambda: notifier.tick(T0 + 3 * HOUR) and all_rows(Mute) == [])
        tick_until(notifier, T0 + 3 * HOUR + 10_000, "CLOSED", "MUTED")
        eventually(lambda: len(hook.requests) == 1)
    assert messages(hook)[0]["title"].endswith("recovered")


def test_muting_again_between_attempts_of_a_summary_starts_a_new_mute(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    again_ms = T0 + HOUR + 1_000
    job = job_with_channels(hook)
    mute(job)
    hold_alarm(job)
    summed_up = hold_alarm(job)
    with FakeExecutor() as broken, notifying(config, alarm_urls=(url_of(broken),)) as notifier:
        broken.respond("*", Answer(status=500), Answer())
        tick_until(notifier, T0 + HOUR, "MUTED", "SENT")
        mute(job, now_ms=again_ms)
        assert [alarm.mute_id for alarm in all_rows(Alarm)] == [None, None]
        later = fail_run(job, again_ms)
        tick_until(notifier, again_ms, "MUTED", "SENT", "MUTED")
        eventually(lambda: notifier.tick(again_ms + HOUR) and all_rows(Mute) == [])
    first, second = (message["message"] for message in messages(hook))
    assert f"Held back: 2 alarms, runs {summed_up.id - 1} to {summed_up.id}" in first
    assert f"Held back: 1 alarm, runs {later.id} to {later.id}" in second
    assert f"from {when_text(again_ms)} until {when_text(again_ms + HOUR)}" in second


def test_a_job_whose_failed_run_was_cleaned_up_has_an_unknown_state(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    group = make_group(title="Shop", app_name="shop", alarm_urls=url_of(hook))
    failing, cleaned, fine = (
        make_job(job_group=group.id, job_desc=name) for name in ("failing", "cleaned", "fine")
    )
    mute(group_id=group.id)
    runs = [hold_alarm(job) for job in (failing, cleaned, fine)]
    assert call_back(make_run(fine).id, 200, now_ms=T0 + 1_000)
    for run in runs[1:]:
        remove(run)
    with notifying(config) as notifier:
        eventually(lambda: notifier.tick(T0 + HOUR) and all_rows(Mute) == [])
    (message,) = messages(hook)
    assert message["title"] == "[Duetime] Shop (shop): no longer muted, still failing"
    failing_part, unknown = message["message"].split(
        "State unknown (the failed runs were cleared from the log, no success since):"
    )
    assert f"Still failing:\nfailing (job {failing.id}): 1 alarm, runs {runs[0].id}" in failing_part
    assert f"\ncleaned (job {cleaned.id}): 1 alarm, runs {runs[1].id}" in unknown
    assert f"Recovered meanwhile: fine (job {fine.id})" in unknown
    (ended,) = end_another_mute(cleaned)
    assert (
        compose_mute_end(ended, config).title
        == f"[Duetime] cleaned (job {cleaned.id}): no longer muted, state unknown"
    )
    assert "Still failing" not in compose_mute_end(ended, config).body


def end_another_mute(job: Job) -> list[EndedMute]:
    """Return the end of a further mute of a job, after its failed run was cleaned up."""
    mute(job)
    remove(hold_alarm(job))
    return take("one", T0 + 2 * HOUR)
