"""Drained addresses: which of a group's addresses take new runs.

A drained address gets no new run by any route; what it has goes on, and kill, log and probes still reach it. Only a run for
which a person has entered addresses may go there all the same.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

#: largest list of addresses a line of a trace shows
SHOWN_MAX = 20


class Candidates(NamedTuple):
    """The addresses a run may go to, and those that are drained, each in the order of the list."""

    open: tuple[str, ...]
    drained: tuple[str, ...] = ()


def bare_address(address: str) -> str:
    """Return what two spellings of one address have in common: ``http://Host:9999/`` is ``http://host:9999``."""
    return address.strip().rstrip("/").lower()


def is_drained(address: str, drained: Collection[str]) -> bool:
    """Whether an address is among the drained ones, which are bare."""
    return bool(drained) and bare_address(address) in drained


def leave_out(addresses: Sequence[str], drained: Collection[str]) -> Candidates:
    """Sort the addresses of a group into those that take new runs and those that are drained."""
    if not drained:
        return Candidates(tuple(addresses))
    left_out = tuple(address for address in addresses if bare_address(address) in drained)
    return Candidates(tuple(address for address in addresses if address not in left_out), left_out)


def tell_drained(left_out: Sequence[str], *, entered: bool = False) -> tuple[str, ...]:
    """Return the line of a trace about drained addresses, none where there are none; ``entered``: the run goes there all the same."""
    if not left_out:
        return ()
    count = f"{len(left_out)} address{'' if len(left_out) == 1 else 'es'}"
    more = f" and {len(left_out) - SHOWN_MAX} more" if len(left_out) > SHOWN_MAX else ""
    fate = "entered for this run all the same" if entered else "left out"
    return (f"Drained: {count} {fate} [{', '.join(left_out[:SHOWN_MAX])}{more}]",)


def tell_all_drained(app_name: str, drained: int) -> str:
    """Return the result of a run that nobody may take because every address of its group is drained."""
    count = "its only address is drained" if drained == 1 else f"all {drained} addresses are drained"
    return f"Result: not sent, no executor of {app_name} takes new runs: {count}"
