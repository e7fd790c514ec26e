"""Previews: what a run to come would get, with names for what only the run itself will have."""

import pytest

from app.domain.parameters.errors import NotFilled
from app.domain.parameters.placeholders import Fact, Origin, Unknown
from app.domain.parameters.template import parse
from tests.domain.parameters.values import values

UNKNOWN: frozenset[Unknown] = frozenset({Fact.RUN_ID, *Origin})


def previewed(text: str, unknown: frozenset[Unknown] = UNKNOWN) -> str:
    return parse(text).preview(values(), unknown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${time:yyyy-MM-dd} ${job.id}", "2026-11-20 7"),
        ("${run.id}", "‹run.id›"),
        ("${parent.result}", "‹parent.result›"),
        ("${parent.result.rows[0].id:-none}", "‹parent.result.rows[0].id›"),
        ("${parent.result:-}", "‹parent.result›"),
        ("${parent.param}", "‹parent.param›"),
        ("${secret.TOKEN}", "‹secret TOKEN›"),
        ("$${run.id}", "${run.id}"),
        (
            '{"n": ${parent.result.n}, "t": "${secret.TOKEN}"}',
            '{"n": ‹parent.result.n›, "t": "‹secret TOKEN›"}',
        ),
        ("${shard.index}", "0"),
    ],
)
def test_what_is_known_only_then_is_named(text: str, expected: str) -> None:
    assert previewed(text) == expected


def test_facts_of_a_broadcast_are_named() -> None:
    facts: frozenset[Unknown] = frozenset({Fact.SHARD_INDEX, Fact.SHARD_TOTAL})
    assert previewed("${shard.index} of ${shard.total}", facts) == "‹shard.index› of ‹shard.total›"


def test_without_a_parent_there_is_the_default_or_an_error() -> None:
    alone: frozenset[Unknown] = frozenset({Fact.RUN_ID})
    assert previewed("${parent.result.file:-none}", alone) == "none"
    with pytest.raises(NotFilled, match="the run has no parent"):
        previewed("${parent.result}", alone)


def test_what_cannot_be_filled_in_is_an_error() -> None:
    with pytest.raises(NotFilled, match="year out of range"):
        previewed("${time+9999y:yyyy}")
