"""Saved views: allowed filters."""

from app.domain.lists.filters import VALUE_MAX, ListName, filters_text, kept_filters, read_filters
from tests.support.truth_table import truth_table


@truth_table(
    "name, query, kept",
    [
        (ListName.JOBS, {"jobGroup": "2", "page": "7", "length": "50", "done": "saved"}, {"jobGroup": "2"}),
        (ListName.JOBS, {"tag": " a&b=c ", "author": "  ", "jobDesc": ""}, {"tag": "a&b=c"}),
        (ListName.JOBS, {"_external": "1", "_scheme": "https", "next": "//evil", "logStatus": "2"}, {}),
        (
            ListName.LOGS,
            {"range": "custom", "from": "2024-05-01T00:00", "to": "x", "tag": "a"},
            {"range": "custom", "from": "2024-05-01T00:00", "to": "x"},
        ),
        (ListName.LOGS, {"jobId": "9" * (VALUE_MAX + 1), "logStatus": "2"}, {"logStatus": "2"}),
    ],
)
def test_only_known_filters_in_use_are_kept(
    name: ListName, query: dict[str, str], kept: dict[str, str]
) -> None:
    assert kept_filters(name, query) == kept
    assert read_filters(name, filters_text(query)) == kept
