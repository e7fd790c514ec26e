"""Every row of the tables of known holes has a test, or the reason why it cannot have one."""

import ast
from pathlib import Path

from tests.security.rows import MODULES, NOT_APPLICABLE, row_of, rows


def test_every_row_is_attacked_or_explained() -> None:
    known = rows()
    assert len(known) >= 70
    named = {name: row_of(name, known) for module in MODULES for name in names_of(module)}
    assert [name for name, row in named.items() if row is None] == [], "tests without a row"
    attacked = set(named.values())
    assert attacked & NOT_APPLICABLE.keys() == set()
    assert [row for row in known if row not in attacked | NOT_APPLICABLE.keys()] == []
    assert NOT_APPLICABLE.keys() - set(known) == set()


def names_of(module: str) -> list[str]:
    source = (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if function.name.startswith("test_")]
