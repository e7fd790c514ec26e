"""Health check of the container image: ``python -m app.container.health``.

Exit code 0 if the parts that run in this container work, otherwise 1 and a line for each that does not. A
console is asked whether it answers, not for ``/ready``, which is 503 while no workers run anywhere: proxies
that take unhealthy containers out of service would then refuse the results of executors, too.
"""

import sys
from pathlib import Path

from app.container.process import PARTS, ROLES
from app.errors import NotConfigured
from app.settings.config import Config
from app.settings.console_address import console_address, failure
from app.settings.home import keep_new_files_private

#: seconds the console may take to answer
ANSWER_S = 5


def main() -> int:
    """Print a line for each problem; return the exit code."""
    keep_new_files_private()
    try:
        problems = find_problems(Config.from_env(), running_parts(Path("/proc")))
    except NotConfigured as exc:
        problems = [str(exc)]
    for problem in problems:
        print(f"unhealthy: {problem}")
    return 1 if problems else 0


def running_parts(proc: Path) -> list[str]:
    """Return the parts of the roles that run in this container, whether or not an init is process 1."""
    roles = set[str]()
    for path in proc.glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:  # The process has ended.
            continue
        if "app.container" in words:
            roles |= {word for word in words if word in ROLES}
    return [name for name in PARTS if any(name in ROLES[role] for role in roles)]


def find_problems(config: Config, names: list[str]) -> list[str]:
    """Return a line for each of the parts that does not work."""
    if not names:
        return ["no role runs in this container"]
    checks = {"console": _console_problem, "workers": _workers_problem}
    return [f"{name}: {problem}" for name in names if (problem := checks[name](config))]


def _console_problem(config: Config) -> str:
    url = f"{console_address(config)}/health"
    problem = failure(url, timeout_s=ANSWER_S)
    return "" if problem is None else f"{url}: {problem}"


def _workers_problem(config: Config) -> str:
    # It is imported here, because the database takes a second of CPU time, which a console is spared.
    from app.container.scan import find_problem

    return find_problem(config)


if __name__ == "__main__":
    sys.exit(main())
