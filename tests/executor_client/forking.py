"""Server of command lines: runs each in a fork of itself, which has loaded the client's modules.

Started once by ``process.command``; half of the time of a command line is loading modules. A line of standard
input is an order as JSON, a line of standard output its exit code, and there is one order at a time.
"""

import json
import os
import runpy
import sys
from typing import Any, NoReturn

import executor_client.__main__
import executor_client.program.check  # noqa: F401 - loaded for all orders


def main() -> None:
    """Run orders until standard input ends."""
    del sys.modules["executor_client.__main__"]  # it runs in each fork
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def run(order: dict[str, Any]) -> NoReturn:
    """Become ``python -m executor_client``: end this process as it would."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environ"])
    files = [
        os.open(os.devnull, os.O_RDONLY),
        *(os.open(name, os.O_WRONLY | os.O_APPEND) for name in order["outputs"]),
    ]
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.path[0] = order["cwd"]
    sys.argv = ["__main__.py", *order["arguments"]]
    runpy.run_module("executor_client", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    main()
