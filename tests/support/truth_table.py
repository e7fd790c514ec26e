"""Truth tables: tests of pure rules that check many rows and report each that fails.

As a parameter each row would be a test of its own, with set-up, report and a line in the plan.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def truth_table(names: str, rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Call the test with each row of values for ``names``, such as ``"text, expected"``.

    Not for tests that change something: what fixtures make is the same for all rows.
    """
    keys = [name.strip() for name in names.split(",")]
    table = [row if len(keys) > 1 else (row,) for row in rows]
    assert table, "a table without rows proves nothing"

    def decorate(test: Test) -> Test:
        def check_rows(**values: Any) -> None:
            failures = []
            for row in table:
                row_values = dict(zip(keys, row, strict=True))
                try:
                    test(**row_values, **values)
                except (Exception, pytest.fail.Exception) as exc:
                    failures.append(f"{row_values}: {type(exc).__name__}: {exc}")
            if failures:
                pytest.fail(f"{len(failures)} of {len(table)} rows failed:\n" + "\n".join(failures))

        functools.update_wrapper(check_rows, test)
        # pytest would read the signature of the test.
        del check_rows.__wrapped__  # type: ignore[attr-defined]
        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        check_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return check_rows

    return decorate
