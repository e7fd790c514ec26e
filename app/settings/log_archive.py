"""Settings of the log archive (``XXL_JOB_LOG_ARCHIVE*``), with their checks."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

FILE, S3 = "file", "s3"
#: folder of the home folder if no URL is set
FOLDER = "log-archive"
#: parameters of an URL of S3
ENDPOINT, REGION, ACCESS_KEY, SECRET_KEY = "endpoint", "region", "access_key", "secret_key"
_PARAMETERS: Final = frozenset({ENDPOINT, REGION, ACCESS_KEY, SECRET_KEY})


class _Present:
    """Mode of this process."""

    mode = ""


def use_mode(mode: str) -> None:
    """Set the mode of this process, as it is configured; empty: what the database says."""
    _Present.mode = mode


def present_mode() -> str:
    """Return the mode of this process; empty: what the database says."""
    return _Present.mode


@dataclass(frozen=True, slots=True)
class ArchiveConfig:
    """Where and how much of the logs of runs is archived."""

    #: ``off``, ``failed`` or ``all``; empty: what the database says
    mode: str = ""
    #: ``file:///…`` or ``s3://bucket/prefix?endpoint=…``; empty: FOLDER of the home folder
    url: str = field(default="", repr=False)
    #: MiB of the text of a run, and of the runs of a job on a day
    run_mb: int = 16
    job_day_mb: int = 256
    #: GiB of all files; 0: no limit
    total_gb: int = 10
    #: 0: kept as long as the runs
    days: int = 30
    #: what matches is replaced before it is stored; empty: nothing
    redact: str = ""


def archive_url(text: str) -> str:
    """Return the URL of an archive; raises ValueError."""
    url = urlsplit(text)
    if "#" in text or (url.scheme == FILE and "?" in text):
        raise ValueError("expected # as %23, and ? in the name of a folder as %3F")  # Else the rest is lost.
    if url.scheme == FILE and not url.netloc and url.path.startswith("/") and len(url.path) > 1:
        return text
    if url.scheme != S3 or not url.netloc:
        raise ValueError("expected file:///folder, or s3://bucket/prefix")
    if "@" in url.netloc:
        raise ValueError("expected keys as access_key and secret_key behind the ?")
    parameters = parse_qs(url.query)
    if not parameters.keys() <= _PARAMETERS:
        raise ValueError("expected endpoint, region, access_key or secret_key behind the ?")
    if (ACCESS_KEY in parameters) != (SECRET_KEY in parameters):
        raise ValueError("expected access_key and secret_key, or none of them")
    if not all(value.startswith(("http://", "https://")) for value in parameters.get(ENDPOINT, ())):
        raise ValueError("expected endpoint=http://host:port or endpoint=https://host")
    return text


def pattern(text: str) -> str:
    """Return a regular expression that matches no empty text; raises ValueError."""
    try:
        regex = re.compile(text)
    except re.error as exc:
        raise ValueError(f"expected a regular expression ({exc})") from exc
    if regex.match(""):
        raise ValueError("expected a regular expression that does not match an empty text")
    return text


def settings_of(
    whole: Callable[[int, int], Callable[[str], int]], choice: Callable[..., Callable[[str], str]]
) -> Mapping[str, tuple[str, Callable[[str], Any]]]:
    """Return variable -> field of ArchiveConfig and parser; from parsers of numbers and choices."""
    return {
        "XXL_JOB_LOG_ARCHIVE": ("mode", choice("off", "failed", "all")),
        "XXL_JOB_LOG_ARCHIVE_URL": ("url", archive_url),
        "XXL_JOB_LOG_ARCHIVE_RUN_MB": ("run_mb", whole(1, 1_024)),
        "XXL_JOB_LOG_ARCHIVE_JOB_DAY_MB": ("job_day_mb", whole(1, 1_048_576)),
        "XXL_JOB_LOG_ARCHIVE_TOTAL_GB": ("total_gb", whole(0, 1_048_576)),
        "XXL_JOB_LOG_ARCHIVE_DAYS": ("days", whole(0, 36_500)),
        "XXL_JOB_LOG_ARCHIVE_REDACT": ("redact", pattern),
    }
