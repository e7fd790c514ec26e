"""Program: run the commands of a list in JSON in turn, in one process; print exit code and output of each."""

import json
import sys

from click.testing import CliRunner

from app.commands.main import duetime
from app.database.engine import unbind_engine
from app.runtime.logging import set_up_logging


def outcome_of(words: list[str]) -> tuple[int, str]:
    """Return exit code and output of a command, with that of the error no one expected."""
    ended = CliRunner().invoke(duetime, words, prog_name="duetime")
    unbind_engine()
    is_exit = ended.exception is None or isinstance(ended.exception, SystemExit)
    return ended.exit_code, ended.output if is_exit else f"{ended.output}{ended.exception!r}"


if __name__ == "__main__":
    set_up_logging("WARNING")
    print(json.dumps([outcome_of(words) for words in json.loads(sys.argv[1])]))  # noqa: T201
