"""Plan and drift of jobs as code as readable diffs with ANSI colours."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from executor_client.api.session import Item
from executor_client.config.terminal import printable

#: action -> its sign and colour
SIGNS = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "adopt": ("=", "cyan"),
    "delete": ("-", "red"),
}
WORDS = {"create": "to create", "update": "to change", "adopt": "to adopt", "delete": "to delete"}
#: longest value shown in a line
VALUE_MAX = 200
_COLOURS = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}
_CODES = re.compile(r"\033\[\d+m")


def without_colours(text: str) -> str:
    """Return a line without ANSI colour codes."""
    return _CODES.sub("", text)


def _style(text: str, colour: str | None, *, is_bold: bool = False) -> str:
    codes = [_COLOURS[colour]] if colour else []
    codes += [1] if is_bold else []
    return "".join(f"\033[{code}m" for code in codes) + text + ("\033[0m" if codes else "")


def plan_lines(plan: Item) -> Iterator[str]:
    """Yield the lines of a plan; the last one is the summary."""
    for change in plan["objects"]:
        yield from _object_lines(change)
        yield ""
    for key in plan["unlisted"]:
        yield f"{key} is managed but not in the files; to delete it: --prune {key}"
    yield summary_line(plan)


def summary_line(plan: Item) -> str:
    """Return one line with the number of objects by action."""
    summary = plan["summary"]
    counts = [f"{summary[action]} {words}" for action, words in WORDS.items() if summary.get(action)]
    if not counts:
        return f"Nothing to do: {summary.get('unchanged', 0)} unchanged."
    return f"Plan: {', '.join(counts)}, {summary.get('unchanged', 0)} unchanged."


def drift_lines(items: Sequence[Item]) -> Iterator[str]:
    """Yield the lines of the drift; the last one is the summary."""
    for item in items:
        suffix = " was deleted" if item["is_gone"] else f" ({item['id']})"
        yield _style(f"! {item['kind']} {item['key']}{suffix}", "yellow", is_bold=True)
        yield f"    applied {_instants([item['applied_at']])} from {item['source']}"
        for field in item["fields"]:
            yield f"    {field['field']}: {_value(field['old'])} in the code, now {_value(field['new'])}"
        yield ""
    objects = "object" if len(items) == 1 else "objects"
    yield f"Drift: {len(items)} {objects} changed since the last apply." if items else "No drift."


def _object_lines(change: Item) -> Iterator[str]:
    sign, colour = SIGNS[change["action"]]
    name = f"{sign} {change['kind']} {change['key']}"
    yield _style(f"{name} ({change['id']})" if change["id"] else name, colour, is_bold=True)
    if change["action"] == "adopt":
        yield "    exists; the code owns the members it names from now on"
    for note in change["notes"]:
        yield f"    {printable(note)}"
    for field in change["fields"]:
        yield from _field_lines(field, is_new=change["action"] == "create")
    if change["owned"]:
        yield f"    owned by the code from now on: {', '.join(change['owned'])}"
    if change["released"]:
        yield f"    left to the console from now on: {', '.join(change['released'])}"
    yield from _time_lines(change)


def _field_lines(field: Item, *, is_new: bool) -> Iterator[str]:
    if is_new:
        yield f"    {field['field']}: {_value(field['new'])}"
    else:
        remark = "  (changed in the console)" if field["was_edited"] else ""
        yield f"    {field['field']}: {_value(field['old'])} -> {_value(field['new'])}{remark}"
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in field.get("diff", ()):
        yield "      " + _style(printable(line, "\t"), colours.get(line[:1]))


def _time_lines(change: Item) -> Iterator[str]:
    times = change["next_times"]
    if times is not None:
        for word, instants in (("until now", times["before"]), ("then", times["after"])):
            if word == "then" or instants:
                yield f"    runs {word}: {_instants(instants) or 'never, the schedule is off'}"
    if change["withdrawn"]:
        yield f"    withdrawn: {_instants(change['withdrawn'])}"


def _instants(instants: Sequence[str]) -> str:
    """Return instants of the API to the second: ``2030-01-31 08:00:00 UTC``."""
    return ", ".join(f"{instant[:19].replace('T', ' ')} UTC" for instant in instants)


def _value(value: Any) -> str:
    """Return a value in one line."""
    if isinstance(value, dict) and "sha256" in value:
        lines = "line" if value["lines"] == 1 else "lines"
        return f"{value.get('language', 'code')}, {value['lines']} {lines} ({value['sha256'][:12]})"
    if isinstance(value, dict) and "language" in value:
        return str(value["language"])
    if value is None or value == "":
        return "none" if value is None else '""'
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return printable(", ".join(map(_text, value))) or "none"
    text = json.dumps(value, ensure_ascii=False) if "\n" in str(value) else printable(_text(value))
    return text if len(text) <= VALUE_MAX else text[:VALUE_MAX] + "…"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
