"""Public names of the client, which programs import: with and without the packages of its extras."""

import subprocess
import sys

import executor_client
from tests.support.truth_table import truth_table

#: modules that stay where they are, whatever is behind them
MODULES = (
    "executor_client.__main__",
    "executor_client.api.errors",
    "executor_client.demo",
    "executor_client.executor",
    "executor_client.testing",
)
#: packages of the extras ``[cli]`` and ``[test]``
EXTRAS = ("click", "yaml", "pytest")
PROGRAM = """
import sys
from importlib import import_module

modules, names, missing = (part.split() for part in sys.argv[1:])
sys.modules.update(dict.fromkeys(missing))
for module in modules:
    import_module(module)
for name in names:
    assert getattr(import_module("executor_client"), name) is not None, name
"""


@truth_table("modules, missing", [((*MODULES, "executor_client.pytest_plugin"), ()), (MODULES, EXTRAS)])
def test_public_names_can_be_imported(modules: tuple[str, ...], missing: tuple[str, ...]) -> None:
    arguments = [" ".join(part) for part in (modules, executor_client.__all__, missing)]
    imported = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)
    assert imported.returncode == 0, imported.stderr
