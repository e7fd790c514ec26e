"""Which parameters of an address filter and sort a list: all that a saved view may hold, and nothing else of an address."""

from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import parse_qsl, urlencode

#: no filter of a list takes more, nor does a whole view
VALUE_MAX = 255
TEXT_MAX = 1_000


class ListName(StrEnum):
    """The lists whose filters can be saved."""

    JOBS = "jobs"
    LOGS = "logs"


FILTERS: dict[ListName, tuple[str, ...]] = {
    ListName.JOBS: (
        "jobGroup",
        "triggerStatus",
        "jobDesc",
        "executorHandler",
        "author",
        "tag",
        "favourites",
        "sort",
    ),
    ListName.LOGS: ("jobGroup", "jobId", "logStatus", "range", "from", "to", "sort"),
}


def kept_filters(name: ListName, given: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of a list that are in use among the parameters of an address."""
    return {
        each: given[each].strip()
        for each in FILTERS[name]
        if 0 < len(given.get(each, "").strip()) <= VALUE_MAX
    }


def filters_text(filters: Mapping[str, str]) -> str:
    """Write filters as they are stored: ``jobGroup=2&author=ann``."""
    return urlencode(filters)


def read_filters(name: ListName, text: str) -> dict[str, str]:
    """Read stored filters; what the list does not know is left out."""
    return kept_filters(name, dict(parse_qsl(text)))
