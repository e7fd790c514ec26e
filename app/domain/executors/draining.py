"""Drained addresses: split of a group's addresses into those with and without new runs.

A drained address gets no new run by any route. Its current runs continue, and kill, log and probes still
reach it. Only a run with addresses entered by a user may be sent there.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from app.domain.runs.trace_templates import (
    ALL_DRAINED,
    DRAINED,
    DRAINED_ENTERED,
    DRAINED_ENTERED_MORE,
    DRAINED_ENTERED_ONE,
    DRAINED_MORE,
    DRAINED_ONE,
    ONLY_ONE_DRAINED,
    fill,
)

#: addresses shown in a line of a trace
SHOWN_MAX = 20


class Candidates(NamedTuple):
    """The open and the drained addresses of a list, in its order; open ones take new runs."""

    open: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def bare_address(address: str) -> str:
    """Return the normal form of an address: ``http://Host:9999/`` is ``http://host:9999``."""
    return address.strip().rstrip("/").lower()


def is_drained(address: str, drains: Collection[str]) -> bool:
    """Whether an address is drained; ``drains`` holds bare addresses."""
    return bool(drains) and bare_address(address) in drains


def leave_out(addresses: Sequence[str], drains: Collection[str]) -> Candidates:
    """Split the addresses of a group into those that take new runs and those that are drained."""
    if not drains:
        return Candidates(tuple(addresses))
    left_out = tuple(address for address in addresses if bare_address(address) in drains)
    return Candidates(tuple(address for address in addresses if address not in left_out), left_out)


def trace_drained(addresses: Sequence[str], *, are_entered: bool = False) -> tuple[str, ...]:
    """Return the line of a trace about drained addresses, if there are any.

    ``are_entered``: they were entered for this run, so that it may go there; otherwise they were left out.
    """
    if not addresses:
        return ()
    single, some, many = (
        (DRAINED_ENTERED_ONE, DRAINED_ENTERED, DRAINED_ENTERED_MORE)
        if are_entered
        else (DRAINED_ONE, DRAINED, DRAINED_MORE)
    )
    more = len(addresses) - SHOWN_MAX
    template = single if len(addresses) == 1 else many if more > 0 else some
    return (fill(template, n=len(addresses), addresses=", ".join(addresses[:SHOWN_MAX]), more=more),)


def trace_all_drained(app_name: str, count: int) -> str:
    """Return the result line of a run that is not sent because all addresses of its group are drained."""
    return fill(ONLY_ONE_DRAINED if count == 1 else ALL_DRAINED, app=app_name, n=count)
