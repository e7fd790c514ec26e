"""The plan of tests: on which kinds of database a set of parameters runs by default."""

from types import SimpleNamespace
from typing import Any

from tests.support.plan import TESTS, elsewhere_shown

KINDS = ("sqlite", "mariadb")


def sets_on(path: str, kinds: tuple[str, ...] = KINDS) -> list[Any]:
    """Return a test with four sets of parameters on these kinds of database."""
    return [
        Test(
            path=TESTS / path,
            nodeid=f"tests/{path}::test_it[{kind}-{number}]",
            callspec=SimpleNamespace(params={"database_kind": kind}, _idlist=[kind, number]),
        )
        for kind in kinds
        for number in "0123"
    ]


class Test(SimpleNamespace):
    """What the plan reads of a test."""

    __test__ = False
    __hash__ = object.__hash__


def test_the_first_parameters_run_everywhere_and_others_in_turn() -> None:
    tests = sets_on("pipeline/test_one.py")
    left_out = elsewhere_shown(tests)
    run = {test.nodeid.partition("[")[2].rstrip("]") for test in tests if test not in left_out}
    assert run == {"sqlite-0", "mariadb-0", "mariadb-1", "sqlite-2", "mariadb-3"}


def test_statements_and_runs_on_one_database_have_all_parameters() -> None:
    assert elsewhere_shown(sets_on("store/test_one.py")) == set()
    assert elsewhere_shown(sets_on("pipeline/test_one.py", ("sqlite",))) == set()
