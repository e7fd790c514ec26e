"""docs/reference/cli.md, made from the commands of duetime: ``python3 manage.py reference`` writes it."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from app.commands.main import OPERATING, duetime
from tests.documented.prose import wrapped

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/cli.md"
HEAD = """# The commands of `duetime`

Made from the program by `python3 manage.py reference`; how to use them: [cli.md](../cli.md).

Commands marked *host* work on the installation of this host and come with the server only. The
others work over API v1. They also have `--profile NAME`, `-o table|json|yaml` and, with the server,
`--local`.
"""
#: options of all commands over the API
COMMON = {"--local", "--profile", "--output", "--help"}


def reference() -> str:
    """Return the page."""
    parts = [HEAD]
    context = click.Context(duetime, info_name="duetime")
    for name in duetime.list_commands(context):
        command = duetime.get_command(context, name)
        assert command is not None
        place = " (host)" if name in OPERATING else ""
        for path, each in _leaves(f"duetime {name}", command):
            parts.append("\n".join(_section(path, place, each, context)))
    return "\n".join(parts)


def _leaves(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from _leaves(f"{path} {name}", inner)
    else:
        yield path, command


def _section(path: str, place: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=path.removeprefix("duetime "))
    arguments = " ".join(piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]")
    yield f"## {path}{place}\n"
    yield f"```\n{path} {arguments}".rstrip() + "\n```\n"
    # Python 3.13 removes the indentation of docstrings itself
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        is_code = paragraph.startswith("\b")
        yield f"```\n{paragraph[2:]}\n```\n" if is_code else wrapped(paragraph) + "\n"
    records = [
        each.get_help_record(context)
        for each in command.get_params(context)
        if isinstance(each, click.Option) and not COMMON & {*each.opts}
    ]
    rows = [[cell.replace("|", "\\|") for cell in record] for record in records if record]
    if rows:
        yield "\n".join(["| option | meaning |", "|---|---|", *(f"| `{a}` | {b} |" for a, b in rows), ""])


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
