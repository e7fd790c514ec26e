"""Drained addresses: which ones take new runs, and what a run's trace says of the others."""

from app.domain.executors.draining import (
    SHOWN_MAX,
    bare_address,
    is_drained,
    leave_out,
    trace_all_drained,
    trace_drained,
)
from tests.support.truth_table import truth_table

A, B, C = "http://10.0.0.1:9999", "http://10.0.0.2:9999/", "http://Host-3:9999"


@truth_table(
    "address, other, same",
    [
        (A, A, True),
        (A, A + "/", True),
        (A, f"  {A} ", True),
        (C, "http://host-3:9999/", True),
        (A, "http://10.0.0.1:9998", False),
        (A, "https://10.0.0.1:9999", False),
        (A, "http://10.0.0.11:9999", False),
    ],
)
def test_two_spellings_of_one_address_are_the_same(address: str, other: str, same: bool) -> None:
    assert (bare_address(address) == bare_address(other)) is same
    assert is_drained(other, {bare_address(address)}) is same


@truth_table(
    "drained, left, left_out",
    [
        ([], (A, B, C), ()),
        ([A], (B, C), (A,)),
        (["http://10.0.0.2:9999"], (A, C), (B,)),
        (["http://HOST-3:9999/"], (A, B), (C,)),
        ([A, B, C], (), (A, B, C)),
        (["http://10.0.0.9:9999"], (A, B, C), ()),
    ],
)
def test_drained_addresses_are_left_out_and_the_order_stays(
    drained: list[str], left: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    found = leave_out([A, B, C], frozenset(map(bare_address, drained)))
    assert (found.open, found.left_out) == (left, left_out)


@truth_table(
    "addresses, entered, lines",
    [
        ([], False, ()),
        ([], True, ()),
        ([A], False, (f"Drained: 1 address left out [{A}]",)),
        ([A, B], False, (f"Drained: 2 addresses left out [{A}, {B}]",)),
        ([A], True, (f"Drained: 1 address used anyway, entered for this run [{A}]",)),
    ],
)
def test_the_trace_names_what_was_left_out(
    addresses: list[str], entered: bool, lines: tuple[str, ...]
) -> None:
    assert trace_drained(addresses, are_entered=entered) == lines


def test_the_trace_names_no_more_than_fits() -> None:
    (line,) = trace_drained([f"http://10.0.0.{number}:9999" for number in range(200)])
    assert line.startswith("Drained: 200 addresses left out [http://10.0.0.0:9999, ")
    assert line.endswith(f" and {200 - SHOWN_MAX} more]")
    assert line.count("http") == SHOWN_MAX


@truth_table("count, reason", [(1, "its only address is drained"), (3, "all 3 addresses are drained")])
def test_a_run_without_an_undrained_address_names_the_drain(count: int, reason: str) -> None:
    assert (
        trace_all_drained("orders", count)
        == f"Result: not sent, no executor of orders takes new runs: {reason}"
    )
