"""Words of rounds: what a job runs after, as it is stored or as its code has it."""

import json

from app.console.ui.rounds.words import runs_after_value
from tests.support.truth_table import truth_table


@truth_table(
    "value, words",
    [
        (None, "–"),
        ("null", "–"),
        (
            json.dumps({"jobs": [7, 9]}),
            "after 7, 9: Runs once all of them have succeeded. Runs of the same logical time belong together."
            " It waits 1 day at most and then does not run.",
        ),
        (
            {"jobs": ["app/load"], "rule": "all_ended", "round": "day", "at_deadline": "run"},
            "after app/load: Runs once it has ended, in whatever way. Runs of the same day belong together."
            " It waits 1 day at most and then runs all the same.",
        ),
        (
            {"jobs": [1, 2, 3], "rule": "k_of_n", "k": 2, "round": "since_last", "deadline_s": 0}
            | {"shards": "at_least", "shards_k": 4},
            "after 1, 2, 3: Runs once 2 of them have succeeded. Runs since its own last run belong together."
            " Of a broadcast 4 shards have to succeed. It waits until they arrive, 30 days at most.",
        ),
        ({"jobs": [1], "rule": "other"}, "–"),
    ],
)
def test_what_a_job_runs_after_in_words(value: object, words: str) -> None:
    assert runs_after_value(value) == words
