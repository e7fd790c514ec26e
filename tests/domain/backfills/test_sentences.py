"""Sentences of the list of a backfill."""

from app.domain.backfills.kinds import Which
from app.domain.backfills.sentences import sentence_of

SUMMARY = {"instants": 288, "succeeded": 12, "running": 1, "failed": 2, "missing": 270, "calendar": 3}


def sentence(which: Which, **changes: int) -> str:
    return sentence_of({**SUMMARY, **changes}, which)


def test_what_is_not_run_is_named_with_its_reason() -> None:
    assert sentence(Which.MISSING, to_run=270, blackout=4) == (
        "288 instants: 12 already succeeded, 1 waiting or in progress, 2 failed, 3 left out by the calendar,"
        " 4 in a blackout, 270 to run"
    )
    assert sentence(Which.FAILED, to_run=2) == (
        "288 instants: 12 already succeeded, 1 waiting or in progress, 270 without a run,"
        " 3 left out by the calendar, 2 to run"
    )


def test_what_is_run_again_is_named() -> None:
    assert sentence(Which.ALL, to_run=284) == (
        "288 instants: 1 waiting or in progress, 3 left out by the calendar, 284 to run, 12 of which have"
        " succeeded before"
    )
    assert sentence_of({"instants": 1, "missing": 1, "to_run": 1}, Which.ALL) == "1 instant: 1 to run"
    assert sentence_of({"instants": 0, "to_run": 0}, Which.ALL) == "0 instants: 0 to run"
