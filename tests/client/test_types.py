"""A user's typed program: what type checkers accept and refuse, and what the programs need at run time."""

import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

from tests.acceptance.programs import ROOT
from tests.support.executor_docs import snippet

PROGRAM = """\
import asyncio
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta

from executor_client import ApiError, AsyncClient, Client, context, job
from executor_client.client.client import Job, Run


@job("closeOrders", cron="0 0/5 * * * ?", timezone="Europe/Berlin", retry=3, owner="ann", route="FAILOVER")
def close_orders() -> None:
    context.log("closed")


@job("report", every=timedelta(minutes=5), param={"day": date(2026, 1, 1)}, tags=["a"], enabled=True)
async def report() -> str:
    return "done"


def trigger(url: str, token: str) -> str | None:
    with Client(url, token) as client:
        found: Job = client.job("closeOrders", group="my-app")
        run: Run = client.trigger(found, {"day": date(2026, 1, 1)}, in_=timedelta(minutes=1))
        try:
            run.wait(timeout=60, check=True)
        except (ApiError, TimeoutError) as exc:
            print(exc)
        started: datetime | None = run.started_at
        for line in run.follow():
            print(line.upper())
        reveal_type(run.state)
        listed: list[Job] = list(client.jobs(owner="ann", enabled=True))
        return run.message if started and listed else None


async def trigger_all(names: list[str]) -> AsyncIterator[str]:
    async with AsyncClient() as client:
        runs = await asyncio.gather(*(client.trigger(name) for name in names))
        for run in runs:
            await run.wait()
            async for line in run.follow(timeout=3):
                yield line
        async for each in client.runs(state="unsuccessful", limit=3):
            yield each.reason
"""
WRONG = """\
from executor_client import Client, job


@job("a", route="first", retry="3")
def a() -> None: ...


@job("b", crn="* * * * *")
def b() -> None: ...


Client().trigger(["c"])
Client().runs(state="done")
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy --strict reports of the programs."""
    folder = tmp_path_factory.mktemp("typed")
    documented = snippet("def close(url") + snippet("async def close_all")
    programs = {"right.py": PROGRAM, "wrong.py": WRONG, "documented.py": documented}
    for name, text in programs.items():
        (folder / name).write_text(text)
    files = [str(folder / name) for name in programs]
    arguments = ["--strict", "--config-file=", f"--cache-dir={folder}/cache", "--python-version=3.10"]
    report, _problems, _code = api.run([*arguments, "--follow-imports=silent", *files])
    return report.replace(f"{folder}/", "")


def lines_of(report: str, name: str) -> list[str]:
    return [line for line in report.splitlines() if line.startswith(name)]


def test_a_typed_program_is_accepted(checked: str) -> None:
    (only,) = lines_of(checked, "right.py")
    assert "Revealed type is" in only
    assert "'waiting'" in only
    assert lines_of(checked, "documented.py") == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (4, '"route"'),
        (4, '"retry"'),
        (8, '"crn"'),
        (12, '"list[str]"'),
        (13, '"state"'),
    ],
)
def test_wrong_arguments_are_refused(checked: str, line: int, problem: str) -> None:
    assert [each for each in lines_of(checked, f"wrong.py:{line}:") if problem in each], checked


@pytest.mark.extensive
def test_python_3_10_has_the_syntax_and_the_names_that_the_client_uses(tmp_path: Path) -> None:
    """As its pyproject.toml promises; ``except*``, ``datetime.UTC`` and ``asyncio.TaskGroup`` are newer."""
    arguments = [f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={tmp_path}"]
    report, problems, code = api.run([*arguments, "--python-version=3.10", str(ROOT / "executor_client")])
    assert code == 0, report + problems


def test_neither_commands_nor_client_need_an_extra() -> None:
    """PyYAML comes with [cli] only; click is there with Flask."""
    program = (
        "import sys; sys.modules['yaml'] = None;"
        "import executor_client.client.client, executor_client.client.async_client;"
        "from executor_client.__main__ import main; sys.exit(main(['plan', 'nope.py']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (
        2,
        "executor_client: cannot import nope.py: there is no such file\n",
    )
