"""Findings of the doctor: result of each check, and advice."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

#: names in a list of a finding; more are counted
NAMED_MAX = 5


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    #: works, but an operator should know
    WARNING = "warning"
    #: something does not work, or is open to others
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check; ``advice`` is what to do, empty if nothing."""

    check: str
    level: Level
    text: str
    advice: str = ""


#: a check yields what it found, at least one finding
Findings = Iterator[Finding]


def fine(check: str, text: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(check, Level.OK, text)


def warning(check: str, text: str, advice: str) -> Finding:
    """Return a finding that an operator should know."""
    return Finding(check, Level.WARNING, text, advice)


def problem(check: str, text: str, advice: str) -> Finding:
    """Return a finding that has to be mended."""
    return Finding(check, Level.PROBLEM, text, advice)


def named(names: list[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
