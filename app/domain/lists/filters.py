"""List filters: the URL parameters that filter and sort a list; a saved view stores them."""

from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import parse_qsl, urlencode

#: longest value of a filter, and longest text of a view
VALUE_MAX = 255
TEXT_MAX = 1_000


class ListName(StrEnum):
    """Lists whose filters can be saved."""

    JOBS = "jobs"
    LOGS = "logs"


FILTERS: dict[ListName, tuple[str, ...]] = {
    ListName.JOBS: (
        "q",
        "jobGroup",
        "triggerStatus",
        "jobDesc",
        "executorHandler",
        "author",
        "tag",
        "last",
        "code",
        "favourites",
        "sort",
    ),
    ListName.LOGS: (
        "jobGroup",
        "jobId",
        "logStatus",
        "range",
        "from",
        "to",
        "logical_from",
        "logical_to",
        "sort",
    ),
}


def kept_filters(name: ListName, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the filters of a list that are set among the parameters of a URL."""
    return {
        key: parameters[key].strip()
        for key in FILTERS[name]
        if 0 < len(parameters.get(key, "").strip()) <= VALUE_MAX
    }


def filters_text(filters: Mapping[str, str]) -> str:
    """Return filters as they are stored: ``jobGroup=2&author=ann``."""
    return urlencode(filters)


def read_filters(name: ListName, text: str) -> dict[str, str]:
    """Parse stored filters; those the list does not have are left out."""
    return kept_filters(name, dict(parse_qsl(text)))
