"""Fault harness: runs jobs under faults and checks the result; prints one JSON line per scenario.

``.venv/bin/python bench/faults/run.py [SCENARIO …] [--db sqlite] [--keep]``. The default scenario is the
storm: kill -9, SIGSTOP and a bad network, ``--seconds 60 [--seed N] [--network 0.1]``; the seed repeats the
faults, not their timing. ``all`` runs a short storm and every scenario, and ends with a summary. The exit
code is 1 if anything is missing, doubled, early, unfinished, started twice or violates a condition of the
scenario.
"""

import argparse
import inspect
import json
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from bench.faults.installation import CannotRun, NotInstalled  # noqa: E402
from bench.faults.scenarios.archive import archive  # noqa: E402
from bench.faults.scenarios.backfills import backfills  # noqa: E402
from bench.faults.scenarios.blackouts import blackouts  # noqa: E402
from bench.faults.scenarios.broken_promises import broken_promises  # noqa: E402
from bench.faults.scenarios.chains import chains  # noqa: E402
from bench.faults.scenarios.clock_jump import clock_sqlite  # noqa: E402
from bench.faults.scenarios.delayed_database import delayed_database  # noqa: E402
from bench.faults.scenarios.disk_full import disk_full  # noqa: E402
from bench.faults.scenarios.galera import galera  # noqa: E402
from bench.faults.scenarios.garbage_answers import garbage_answers  # noqa: E402
from bench.faults.scenarios.hanging_database import hanging_database  # noqa: E402
from bench.faults.scenarios.java_neighbour import java_neighbour  # noqa: E402
from bench.faults.scenarios.late_outcome import late_outcome  # noqa: E402
from bench.faults.scenarios.limits import limits  # noqa: E402
from bench.faults.scenarios.lost_commits import lost_commits  # noqa: E402
from bench.faults.scenarios.random_faults import random_faults  # noqa: E402
from bench.faults.scenarios.rounds import rounds  # noqa: E402
from bench.faults.scenarios.stop_under_lock import stop_under_lock  # noqa: E402
from tests.support.databases import STARTERS, ServerMissing  # noqa: E402

DATABASES = ("sqlite", *STARTERS)
STORM, ALL = "storm", "all"
#: duration of the storm alone, and as one of all
STORM_S, SHORT_STORM_S = 60.0, 20.0


@dataclass(frozen=True)
class Scenario:
    """A scenario and the databases it supports; the first ``usual`` ones are the default."""

    play: Callable[[str, Path], dict[str, Any]]
    databases: tuple[str, ...]
    usual: int = 1


def catalogue(options: argparse.Namespace) -> dict[str, Scenario]:
    """Return every scenario by name."""
    return {
        STORM: Scenario(partial(random_faults, options=options), DATABASES),
        "delayed-database": Scenario(delayed_database, ("mariadb", "postgresql", "mysql"), usual=2),
        "hanging-database": Scenario(hanging_database, ("mariadb", "postgresql", "mysql"), usual=2),
        "late-outcome": Scenario(late_outcome, ("sqlite",)),
        "stop-under-lock": Scenario(stop_under_lock, ("sqlite",)),
        "garbage-answers": Scenario(garbage_answers, DATABASES),
        "clock-sqlite": Scenario(clock_sqlite, ("sqlite",)),
        "disk-full": Scenario(disk_full, ("sqlite",)),
        "galera": Scenario(galera, ("mariadb",)),
        "java-neighbour": Scenario(java_neighbour, DATABASES),
        "lost-commits": Scenario(lost_commits, ("sqlite",)),
        "limits": Scenario(partial(limits, options=options), DATABASES, usual=3),
        "rounds": Scenario(partial(rounds, options=options), DATABASES, usual=3),
        "chains": Scenario(partial(chains, options=options), DATABASES, usual=3),
        "backfills": Scenario(partial(backfills, options=options), DATABASES, usual=3),
        "blackouts": Scenario(partial(blackouts, options=options), DATABASES, usual=3),
        "archive": Scenario(partial(archive, options=options), DATABASES, usual=3),
        "broken-promises": Scenario(broken_promises, ("sqlite", "mariadb", "postgresql", "mysql"), usual=3),
    }


def chosen(
    options: argparse.Namespace, parser: argparse.ArgumentParser
) -> Iterator[tuple[str, str, Scenario]]:
    """Yield name, database and scenario of each requested run."""
    scenarios = catalogue(options)
    for name in scenarios if ALL in options.scenarios else options.scenarios or [STORM]:
        scenario = scenarios[name]
        if options.db and options.db not in scenario.databases and ALL not in options.scenarios:
            parser.error(f"--db {options.db}: {name} runs on {', '.join(scenario.databases)} only")
        requested = (
            (options.db,) if options.db in scenario.databases else scenario.databases[: scenario.usual]
        )
        for db in requested:
            yield name, db, scenario


def run(name: str, db: str, scenario: Scenario, *, keep: bool) -> dict[str, Any]:
    """Run one scenario in its own folder; an error that stops it is a problem, too."""
    folder = Path(tempfile.mkdtemp(prefix="xxl-job-faults-"))
    result: dict[str, Any] = {"bench": "faults", "scenario": name, "db": db}
    try:
        result |= scenario.play(db, folder)
    except (CannotRun, ServerMissing) as exc:
        result |= {"problems": {"cannot_run": 1}, "cannot_run": str(exc)}
    except NotInstalled as exc:
        result |= {"problems": {}, "skipped": str(exc)}
    except AssertionError as exc:  # an expected effect did not happen in time
        traceback.print_exc()
        result |= {"problems": {"broken_off": 1}, "broken_off": str(exc)}
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return result | ({"folder": str(folder)} if keep else {})


def parse() -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = catalogue(argparse.Namespace())
    summaries = {
        name: (inspect.getdoc(getattr(scenario.play, "func", scenario.play)) or "").split("\n")[0]
        for name, scenario in names.items()
    }
    parser.epilog = "scenarios:\n" + "\n".join(f"  {name:18}{line}" for name, line in summaries.items())
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help=f"which ones; {ALL}: every one; none: the {STORM}"
    )
    parser.add_argument("--db", choices=DATABASES, help="another database than the usual")
    parser.add_argument("--seconds", type=float, help=f"{STORM}: how long faults are made")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31), help=STORM)
    parser.add_argument(
        "--network", type=float, default=0.05, help=f"{STORM}: share of requests that are spoiled"
    )
    parser.add_argument(
        "--no-away", dest="away", action="store_false", help=f"{STORM}: leave the database alone"
    )
    parser.add_argument(
        "--no-stock", dest="stock", action="store_false", help=f"{STORM}: only executors of our own client"
    )
    parser.add_argument("--instants", type=int, default=0, help="backfills: one of so many instants")
    parser.add_argument("--max-running", type=int, default=1, help="backfills: of that one")
    parser.add_argument("--keep", action="store_true", help="keep logs and journals, and say where")
    options = parser.parse_args()
    unknown = [name for name in options.scenarios if name not in (*names, ALL)]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]!r}, only {', '.join(names)} and {ALL}")
    options.seconds = options.seconds or (SHORT_STORM_S if ALL in options.scenarios else STORM_S)
    return options, parser


def main() -> int:
    options, parser = parse()
    problems: dict[str, dict[str, int]] = {}
    for name, db, scenario in list(chosen(options, parser)):
        result = run(name, db, scenario, keep=options.keep)
        print(json.dumps(result, ensure_ascii=False), flush=True)
        problems[f"{name}/{db}"] = result["problems"]
    failed = {name: found for name, found in problems.items() if found}
    if len(problems) > 1:
        passed = [name for name in problems if name not in failed]
        print(
            json.dumps({"bench": "faults", "summary": True, "passed": passed, "failed": failed}), flush=True
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
