"""What a step of a backfill does, and what became of an instant."""

from app.domain.backfills.kinds import BackfillState, InstantState, OnFailure
from app.domain.backfills.progress import Decision, decide, result_of
from tests.support.truth_table import truth_table


@truth_table(
    "state, running, has_waiting, failed, on_failure, after, start",
    [
        # It starts as many as there is room for, and is done when all have ended.
        ("running", 0, True, False, "stop", "running", 3),
        ("running", 2, True, False, "stop", "running", 1),
        ("running", 3, True, False, "stop", "running", 0),
        ("running", 5, True, False, "stop", "running", 0),
        ("running", 2, False, False, "stop", "running", 0),
        ("running", 0, False, False, "stop", "done", 0),
        # At a failure it stops, or goes on; the last one fails it as well.
        ("running", 2, True, True, "stop", "stopping", 0),
        ("running", 0, True, True, "stop", "failed", 0),
        ("running", 0, False, True, "stop", "failed", 0),
        ("running", 2, True, True, "go_on", "running", 1),
        ("running", 0, False, True, "go_on", "done", 0),
        ("stopping", 1, True, True, "stop", "stopping", 0),
        ("stopping", 0, True, True, "stop", "failed", 0),
        # The failure was undone by a late result.
        ("stopping", 1, True, False, "stop", "running", 2),
        ("stopping", 0, False, False, "stop", "done", 0),
        # A pause lasts until all have ended; a failure is acted on when it is resumed.
        ("paused", 0, True, False, "stop", "paused", 0),
        ("paused", 1, False, False, "stop", "paused", 0),
        ("paused", 0, True, True, "stop", "paused", 0),
        ("paused", 0, False, False, "stop", "done", 0),
        ("paused", 0, False, True, "go_on", "done", 0),
        ("paused", 0, False, True, "stop", "failed", 0),
        # What has ended stays as it is.
        *(
            (state, 0, has_waiting, failed, "stop", state, 0)
            for state in ("done", "failed", "cancelled")
            for has_waiting in (False, True)
            for failed in (False, True)
        ),
    ],
)
def test_a_step(
    state: str, running: int, has_waiting: bool, failed: bool, on_failure: str, after: str, start: int
) -> None:
    found = decide(
        BackfillState(state),
        OnFailure(on_failure),
        max_running=3,
        running=running,
        has_waiting=has_waiting,
        has_failed=failed,
    )
    assert found == Decision(BackfillState(after), start)


@truth_table("running, after", [(0, "cancelled"), (1, "cancelling"), (9, "cancelling")])
def test_a_cancelled_one_withdraws_and_waits_for_the_end(running: int, after: str) -> None:
    for has_waiting in (False, True):
        for failed in (False, True):
            found = decide(
                BackfillState.CANCELLING,
                OnFailure.STOP,
                max_running=3,
                running=running,
                has_waiting=has_waiting,
                has_failed=failed,
            )
            assert found == Decision(BackfillState(after), 0, withdraws=True)


@truth_table(
    "runs, result",
    [
        ("", "withdrawn"),
        ("succeeded", "succeeded"),
        ("failed", "failed"),
        ("running", "running"),
        ("withdrawn", "withdrawn"),
        ("succeeded succeeded failed", "failed"),
        ("failed running", "running"),
        ("withdrawn succeeded", "succeeded"),
        ("withdrawn failed", "failed"),
    ],
)
def test_the_result_of_an_instant(runs: str, result: str) -> None:
    assert result_of(map(InstantState, runs.split())) == InstantState(result)
