"""Command line: ``python -m executor_client [COMMAND] …``, installed as ``duetime-executor``.

Without a command, the arguments are those of ``serve``.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from executor_client.code.commands import APPLY, PLAN
from executor_client.program import serving
from executor_client.program.serving import Command
from executor_client.wire.errors import StartRefused
from executor_client.wire.version import VERSION

#: name -> command, in the order of the help
COMMANDS: dict[str, Command] = {
    "serve": serving.SERVE,
    "check": serving.CHECK,
    "plan": PLAN,
    "apply": APPLY,
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with one line instead of the whole usage."""
        self.exit(2, f"{self.prog}: {message} (--help lists the options)\n")


def make_parser(name: str = "serve") -> argparse.ArgumentParser:
    """Return the parser of a command's arguments."""
    command = COMMANDS[name]
    program = Path(sys.argv[0]).name
    first_words = "python -m executor_client" if program == "__main__.py" else program
    parser = _Parser(
        prog=first_words if name == "serve" else f"{first_words} {name}",
        description=command.description,
        epilog=_epilog(),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=VERSION, help="show the version and exit")
    command.add_arguments(parser)
    return parser


def _epilog() -> str:
    lines = [f"  {name:<8}{command.summary}" for name, command in COMMANDS.items()]
    return "commands, as the first argument (COMMAND --help lists its options):\n" + "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    logging.getLogger("waitress").setLevel(logging.ERROR)
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words.pop(0) if words and words[0] in COMMANDS else "serve"
    try:
        return COMMANDS[name].run(make_parser(name).parse_intermixed_args(words))
    except StartRefused as exc:
        print(f"executor_client: {exc}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
