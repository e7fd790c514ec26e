"""Incidents: keys and broken promises."""

from app.domain.promises.incidents import (
    Subject,
    broken_promises,
    key_of_instant,
    key_of_series,
    key_of_window,
    subject_of,
)
from app.domain.promises.promise import promise_of
from tests.support.truth_table import truth_table


@truth_table(
    "key, text, subject",
    [
        (key_of_instant(7, 1_790_000_000_000), "i:7:1790000000000", Subject.INSTANT),
        (key_of_window(7, 2, 1_790_000_000_000), "w:7:2:1790000000000", Subject.WINDOW),
        (key_of_series(7, 31), "r:7:31", Subject.SERIES),
    ],
)
def test_a_key_names_its_subject(key: str, text: str, subject: Subject) -> None:
    assert (key, subject_of(key)) == (text, subject)


def test_broken_promises_keep_their_numbers() -> None:
    members = {"kind": "takes_at_most", "s": 5}
    assert broken_promises('{"3": {"kind": "takes_at_most", "s": 5}}') == {3: promise_of(members)}
    assert broken_promises("{}") == {}
