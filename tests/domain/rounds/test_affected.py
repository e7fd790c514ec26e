"""What becomes of followers while a job does not run: rule, deadline and what is before them decide."""

from app.domain.rounds.effects import Effect, Follower, effects_of
from app.domain.rounds.kinds import AtDeadline, RoundRule
from app.domain.rounds.runs_after import RunsAfter
from tests.support.truth_table import truth_table

ALL, ENDED, ANY, SOME = (
    RoundRule.ALL_SUCCEEDED,
    RoundRule.ALL_ENDED,
    RoundRule.ANY_SUCCEEDED,
    RoundRule.K_OF_N,
)
RUN, WAIT = AtDeadline.RUN, AtDeadline.WAIT


def after(*jobs: int, scheduled: bool = False, **values: object) -> Follower:
    """Return a job that runs after these."""
    return Follower(RunsAfter(jobs, **values), scheduled)  # type: ignore[arg-type]


CHILD = Follower(None, has_schedule=False)


@truth_table(
    "followers, children, effects",
    [
        # nothing begins a round of a job that only follows this one
        ({2: after(1)}, {}, {2: Effect.NOT_RUN}),
        ({2: after(1, at_deadline=RUN)}, {}, {2: Effect.NOT_RUN}),
        # a schedule, or another predecessor, does: then its deadline decides
        ({2: after(1, scheduled=True)}, {}, {2: Effect.DROPPED}),
        ({2: after(1, 9)}, {}, {2: Effect.DROPPED}),
        ({2: after(1, 9, at_deadline=RUN)}, {}, {2: Effect.LATE}),
        ({2: after(1, 9, at_deadline=WAIT)}, {}, {2: Effect.WAITS}),
        ({2: after(1, 9, deadline_s=0)}, {}, {2: Effect.WAITS}),
        ({2: after(1, 9, rule=ENDED)}, {}, {2: Effect.DROPPED}),
        ({2: after(1, 9, rule=ANY)}, {}, {2: Effect.RUNS}),
        ({2: after(1, rule=ANY)}, {}, {2: Effect.NOT_RUN}),
        ({2: after(1, 8, 9, rule=SOME, k=2)}, {}, {2: Effect.RUNS}),
        ({2: after(1, 8, 9, rule=SOME, k=3)}, {}, {2: Effect.DROPPED}),
        ({2: after(1, 8, rule=SOME, k=7)}, {}, {2: Effect.DROPPED}),
        # over others
        ({3: after(2), 2: after(1)}, {}, {2: Effect.NOT_RUN, 3: Effect.NOT_RUN}),
        ({2: after(1, 9), 3: after(2)}, {}, {2: Effect.DROPPED, 3: Effect.NOT_RUN}),
        ({2: after(1, 9), 3: after(2, rule=ENDED)}, {}, {2: Effect.DROPPED, 3: Effect.LATE}),
        ({2: after(1, 9, at_deadline=RUN), 3: after(2)}, {}, {2: Effect.LATE, 3: Effect.LATE}),
        ({2: after(1, 9, rule=ANY), 3: after(2)}, {}, {2: Effect.RUNS}),
        ({2: after(1), 3: after(2, 9, rule=ANY)}, {}, {2: Effect.NOT_RUN, 3: Effect.RUNS}),
        # children
        ({2: CHILD}, {1: [2]}, {2: Effect.NOT_TRIGGERED}),
        ({2: CHILD}, {1: [2], 9: [2]}, {}),
        ({2: Follower(None, has_schedule=True)}, {1: [2]}, {}),
        ({2: CHILD, 3: after(2)}, {1: [2]}, {2: Effect.NOT_TRIGGERED, 3: Effect.NOT_RUN}),
        ({2: CHILD, 3: CHILD}, {1: [2], 2: [3], 3: [2]}, {}),
        ({2: CHILD}, {1: [2], 2: [1]}, {2: Effect.NOT_TRIGGERED}),
    ],
)  # fmt: skip
def test_effects_by_rule_deadline_and_what_is_before(
    followers: dict[int, Follower], children: dict[int, list[int]], effects: dict[int, Effect]
) -> None:
    assert effects_of(1, followers, children) == effects


def test_the_nearest_come_first() -> None:
    followers = {5: after(4), 4: after(3), 3: after(1), 2: after(1)}
    assert list(effects_of(1, followers, {})) == [2, 3, 4, 5]
