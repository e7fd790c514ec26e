"""Findings of the doctor: result of each check, and advice."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from typing import NamedTuple, ParamSpec

P = ParamSpec("P")
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
    """Result of a check, whose name ``check`` adds; ``advice`` is what to do, empty if nothing."""

    check: str
    level: Level
    text: str
    advice: str = ""


class NothingFound(NamedTuple):
    """The finding of a check that has nothing to report; left out behind one that is not fine."""

    text: str


#: what a check yields; it names neither itself nor, but for NothingFound, what the others have found
Findings = Iterator[Finding | NothingFound]


def check(name: str) -> Callable[[Callable[P, Findings]], Callable[P, Iterator[Finding]]]:
    """Make a check of a function: its findings get the name of the check."""

    def decorate(find: Callable[P, Findings]) -> Callable[P, Iterator[Finding]]:
        @wraps(find)
        def run(*args: P.args, **kwargs: P.kwargs) -> Iterator[Finding]:
            is_fine = True
            for finding in find(*args, **kwargs):
                if isinstance(finding, Finding):
                    is_fine = is_fine and finding.level is Level.OK
                    yield replace(finding, check=name)
                elif is_fine:
                    yield Finding(name, Level.OK, finding.text)

        return run

    return decorate


def fine(text: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding("", Level.OK, text)


def warning(text: str, advice: str) -> Finding:
    """Return a finding that an operator should know."""
    return Finding("", Level.WARNING, text, advice)


def problem(text: str, advice: str) -> Finding:
    """Return a finding that has to be mended."""
    return Finding("", Level.PROBLEM, text, advice)


def name_list(names: list[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
