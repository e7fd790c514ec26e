"""Program: run commands in turn, in one process; print exit code and output of each as JSON.

Its argument is ``{"commands": [["jobs", "list"]], "given": "input of the first one"}``.
"""

import itertools
import json
import sys

from click.testing import CliRunner

from app.commands.main import duetime
from app.database.engine import unbind_engine
from app.runtime.logging import set_up_logging


def outcome_of(words: list[str], given: str) -> tuple[int, str]:
    """Return exit code and output of a command, with that of the error no one expected."""
    ended = CliRunner().invoke(duetime, words, input=given, prog_name="duetime")
    unbind_engine()
    is_exit = ended.exception is None or isinstance(ended.exception, SystemExit)
    return ended.exit_code, ended.output if is_exit else f"{ended.output}{ended.exception!r}"


if __name__ == "__main__":
    set_up_logging("WARNING")
    order = json.loads(sys.argv[1])
    inputs = itertools.chain([order["given"]], itertools.repeat(""))
    outcomes = [outcome_of(words, given) for words, given in zip(order["commands"], inputs, strict=False)]
    print(json.dumps(outcomes))  # noqa: T201
