"""Evaluation of rounds: by what has arrived, in whatever order.

Source: docs/reference/rounds.md.
"""

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.rounds.evaluation import BAD, RoundArrival, evaluate, outcome_of, supersedes
from app.domain.rounds.kinds import ArrivalOutcome, RoundReason, RoundRule, RoundState, ShardRule
from app.domain.rounds.runs_after import RunsAfter

SUCCEEDED, FAILED, RETRYING, UNRESOLVED, NOT_RUN, EXCUSED = (
    ArrivalOutcome.SUCCEEDED,
    ArrivalOutcome.FAILED,
    ArrivalOutcome.RETRYING,
    ArrivalOutcome.UNRESOLVED,
    ArrivalOutcome.NOT_RUN,
    ArrivalOutcome.EXCUSED,
)
LETTERS = {
    "s": SUCCEEDED,
    "f": FAILED,
    "r": RETRYING,
    "u": UNRESOLVED,
    "n": NOT_RUN,
    "x": EXCUSED,
}


def arrivals(letters: str) -> list[RoundArrival]:
    """Return an arrival of each of the predecessors 1, 2, 3; a blank: none."""
    return [
        RoundArrival(number, 0, 1, LETTERS[letter], number, log_id=number * 10)
        for number, letter in enumerate(letters, 1)
        if letter.strip()
    ]


@pytest.mark.parametrize(
    ("rule", "letters", "state"),
    [
        ("all_succeeded", "sss", "started"),
        ("all_succeeded", "ss ", "open"),
        ("all_succeeded", "ssr", "open"),
        ("all_succeeded", "ssf", "not_run"),
        ("all_succeeded", "  u", "not_run"),
        ("all_succeeded", "n  ", "not_run"),
        ("all_succeeded", "sxs", "started"),
        ("all_succeeded", "xxx", "not_run"),
        ("all_ended", "sfn", "started"),
        ("all_ended", "fuf", "started"),
        ("all_ended", "ssr", "open"),
        ("all_ended", "s f", "open"),
        ("any_succeeded", "ff ", "open"),
        ("any_succeeded", "f s", "started"),
        ("any_succeeded", "fun", "not_run"),
        ("k_of_n", "ss ", "started"),
        ("k_of_n", "sf ", "open"),
        ("k_of_n", "sff", "not_run"),
        ("k_of_n", "sxx", "started"),
    ],
)
def test_the_rule_decides(rule: str, letters: str, state: str) -> None:
    value = RunsAfter((1, 2, 3), RoundRule(rule), k=2)
    assert evaluate(value, arrivals(letters)).state == state


def test_the_cause_is_what_failed_first() -> None:
    verdict = evaluate(RunsAfter((1, 2, 3)), [*arrivals(" nf")[::-1]])
    assert (verdict.reason, verdict.cause) == (RoundReason.PREDECESSOR, arrivals(" n")[0])


def test_a_round_of_excused_predecessors_is_not_run() -> None:
    verdict = evaluate(RunsAfter((1, 2, 3)), arrivals("xxx"))
    assert (verdict.reason, verdict.cause) == (RoundReason.EXCUSED, None)


@pytest.mark.parametrize(
    ("rule", "count", "letters", "outcome"),
    [
        ("all", 1, "ss", SUCCEEDED),
        ("all", 1, "s ", None),
        ("all", 1, "sr", RETRYING),
        ("all", 1, "sf", FAILED),
        ("at_least", 1, "sf", SUCCEEDED),
        ("at_least", 2, "sf", FAILED),
        ("at_least", 9, "ss", SUCCEEDED),
        ("any", 1, "f ", None),
        ("any", 1, "ff", FAILED),
        ("any", 1, "fs", SUCCEEDED),
    ],
)
def test_the_shards_of_a_broadcast(
    rule: str, count: int, letters: str, outcome: ArrivalOutcome | None
) -> None:
    shards = [
        RoundArrival(1, index, 2, LETTERS[letter], 1, log_id=index + 1)
        for index, letter in enumerate(letters)
        if letter.strip()
    ]
    assert outcome_of(RunsAfter((1,), shards=ShardRule(rule), shards_k=count), shards) == outcome


def test_a_failed_run_without_shards_is_no_success_of_some_earlier_shards() -> None:
    shards = [RoundArrival(1, 1, 3, SUCCEEDED, 1, log_id=2), RoundArrival(1, 2, 3, FAILED, 1, log_id=3)]
    again = RoundArrival(1, 0, 1, FAILED, 2, log_id=4)
    assert outcome_of(RunsAfter((1,)), [again, *shards]) is FAILED
    assert outcome_of(RunsAfter((1,), shards=ShardRule.ANY), [again, *shards]) is SUCCEEDED
    assert outcome_of(RunsAfter((1,)), [again._replace(outcome=SUCCEEDED), *shards]) is SUCCEEDED


def merged(history: Sequence[RoundArrival]) -> set[RoundArrival]:
    """Return what is left of arrivals that come in this order."""
    by_shard: dict[tuple[int, int], RoundArrival] = {}
    for each in history:
        place = each.predecessor_id, each.shard
        if supersedes(each, by_shard.get(place)):
            by_shard[place] = each
    return set(by_shard.values())


def succeeded(history: Sequence[RoundArrival]) -> set[int]:
    """Return the predecessors that have succeeded once these have arrived."""
    return {each.predecessor_id for each in merged(history) if each.outcome is SUCCEEDED}


RULES = st.builds(
    RunsAfter,
    st.just((1, 2, 3)),
    st.sampled_from(RoundRule),
    k=st.integers(1, 3),
    shards=st.sampled_from(ShardRule),
    shards_k=st.integers(1, 3),
)
#: a run has one final outcome, which may come after *retrying* or *unresolved*
RUNS = st.builds(
    lambda job_id, shard, total, log_id, outcome: RoundArrival(
        job_id, shard % total, total, outcome, log_id, log_id=log_id
    ),
    st.integers(1, 3),
    st.integers(0, 1),
    st.sampled_from([1, 2]),
    st.integers(1, 9),
    st.sampled_from([SUCCEEDED, FAILED, RETRYING, UNRESOLVED, NOT_RUN, EXCUSED]),
)
HISTORIES = st.lists(RUNS, max_size=12, unique_by=lambda each: (each.predecessor_id, each.shard, each.log_id))


@given(RULES, HISTORIES, st.randoms())
def test_the_order_and_repeats_of_arrivals_change_nothing(
    rule: RunsAfter, history: list[RoundArrival], random: st.DataObject
) -> None:
    other = [*history, *history]
    random.shuffle(other)  # type: ignore[attr-defined]
    one, two = merged(history), merged(other)
    assert one == two
    assert evaluate(rule, one) == evaluate(rule, two)


def succeeded_ids(arrivals: Collection[RoundArrival]) -> set[int]:
    return {each.predecessor_id for each in arrivals if each.outcome is SUCCEEDED}


@given(RULES, HISTORIES, RUNS)
def test_a_success_stays_and_never_takes_a_start_back(
    rule: RunsAfter, history: list[RoundArrival], last: RoundArrival
) -> None:
    before = evaluate(rule, merged(history))
    single = [each._replace(shard=0, total=1) for each in history]
    more = [*single, last._replace(shard=0, total=1)]
    assert succeeded_ids(merged(single)) <= succeeded_ids(merged(more))
    success = [RoundArrival(job_id, 0, 1, SUCCEEDED, 100, log_id=100) for job_id in rule.jobs]
    assert evaluate(rule, merged([*single, *success])).state is RoundState.STARTED
    if before.state is RoundState.NOT_RUN and before.reason is RoundReason.PREDECESSOR:
        assert before.cause is not None
        assert before.cause.outcome in BAD
