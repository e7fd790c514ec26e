"""The examples and tables on executors (guide, reference, the package's README) are correct."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from executor_client.__main__ import make_parser
from executor_client.api import profiles
from executor_client.config.config import GLUE_LANGUAGES, VARIABLES
from executor_client.execution.metrics import Counters, render
from executor_client.service.endpoints import PATHS
from executor_client.testing import run_handler
from tests.executor_client.process import ROOT
from tests.support.executor_docs import README, SNIPPETS, TEXT, snippet
from tests.support.truth_table import truth_table

SETTINGS = TEXT.partition("## Settings")[2].partition("\n## ")[0]


@truth_table("number", range(len(SNIPPETS)))
def test_every_snippet_is_python(number: int) -> None:
    compile(SNIPPETS[number], f"snippet {number}", "exec")


@pytest.mark.parametrize("snippets", [SNIPPETS, README], ids=["docs", "README.md"])
def test_the_first_example_passes_its_example_test(tmp_path: Path, snippets: list[str]) -> None:
    (tmp_path / "myjobs.py").write_text(snippet("# myjobs.py", snippets))
    (tmp_path / "test_myjobs.py").write_text(snippet("import run_handler", snippets))
    first_words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        first_words,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_example_handlers_can_be_registered(tmp_path: Path) -> None:
    foreign = "open_pool = close_pool = print\ndatabase = None\n"
    classes = snippet("class Reports:").replace(
        "class Reports:", "class Reports:\n    def __init__(self, database): ...\n"
    )
    (tmp_path / "mine.py").write_text(foreign + classes + snippet("moveAccounts"))
    code = (
        "import mine; from executor_client.handlers.registry import registry;"
        " registry.require_bound(); print(*registry.names())"
    )
    first_words = [sys.executable, "-c", code]
    ended = subprocess.run(
        first_words,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout == "moveAccounts name nightly\n", ended.stderr


def test_the_settings_table_is_complete() -> None:
    assert set(re.findall(r"`(XXL_JOB_\w+)`", SETTINGS)) == set(VARIABLES)
    options = {name for action in make_parser()._actions for name in action.option_strings}
    assert set(re.findall(r"`(--[a-z-]+)`", SETTINGS)) == options - {"-h", "--help", "--version"}
    assert re.findall(
        r"`(\w+)`", SETTINGS.partition("`--allow-glue` | none |")[2].partition("\n")[0]
    ) == list(GLUE_LANGUAGES)


def test_documented_paths_and_metrics_exist() -> None:
    assert snippet("register_blueprint").partition("blueprint())  # ")[2].partition("\n")[0].split() == list(
        PATHS
    )
    served = render(Counters(), {"results_waiting": 0})
    named = re.findall(r"`(xxl_job_executor_\w+)`", TEXT)
    assert len(named) >= 3
    assert [name for name in named if f"\n{name} 0\n" not in served] == []


def test_production_examples_use_existing_options() -> None:
    (unit,) = re.findall(r"^ExecStart=\S+ -m executor_client (.*)$", TEXT, re.MULTILINE)
    (container,) = re.findall(r'^CMD \["python", "-m", "executor_client", (.*)\]$', TEXT, re.MULTILINE)
    options = [
        argument
        for argument in (unit + " " + container.replace('"', "")).split()
        if argument.startswith("--")
    ]
    assert set(options) <= set(make_parser()._option_string_actions)
    assert options == ["--token-file"]
    environment = set(re.findall(r"(XXL_JOB_\w+)=", TEXT))
    assert environment <= {*VARIABLES, profiles.TOKEN}


def test_the_commands_of_the_guide_use_existing_options() -> None:
    commands = re.findall(r"^duetime-executor (.*)$", TEXT, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["myjobs", "check"]
    options = set(re.findall(r"--[a-z-]+", " ".join(commands)))
    assert options == {"--admin", "--appname", "--port"}
    assert options <= set(make_parser()._option_string_actions)


RECIPES = (ROOT / "docs" / "executor-recipes.md").read_text(encoding="utf-8")


@truth_table("code", re.findall(r"^```python\n(.*?)^```", RECIPES, re.MULTILINE | re.DOTALL))
def test_a_recipe_runs(code: str) -> None:
    """With stand-ins for what it takes from the application."""
    done: list[object] = []
    pieces = iter([1, 2, 3])
    names = {
        "query": lambda sql, values: pieces,
        "next_piece": lambda: next(pieces, None),
        "move": done.append,
        "rebuild": done.append,
    }
    exec(compile(code, "recipe", "exec"), names)  # our own documentation
    (name,) = re.findall(r'@job\("(\w+)"\)', code)
    result = run_handler(str(name), shard=(1, 3))
    assert (result.code, done) == (200, [1, 2, 3]), result.log


def test_settings_in_recipes_exist() -> None:
    assert set(re.findall(r"XXL_JOB_\w+", RECIPES)) <= set(VARIABLES) | {"XXL_JOB_EXECUTOR_NETWORKS"}
    (compose,) = re.findall(r"^```yaml\n(.*?)^```", RECIPES, re.MULTILINE | re.DOTALL)
    service = yaml.safe_load(compose)["services"]["my-app"]
    wait_s = int(service["environment"]["XXL_JOB_EXECUTOR_SHUTDOWN_WAIT_SECONDS"])
    assert int(service["stop_grace_period"].removesuffix("s")) >= wait_s + 30
