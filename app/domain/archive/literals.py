"""Literals of regular expressions: texts that each match has, found in the parsed expression."""

import re
from collections.abc import Iterable
from typing import Any

from app.compat import parse_regex
from app.domain.archive.folding import fold
from app.domain.archive.trigrams import Need, all_of, any_of, need_of


def need_of_regex(pattern: str, flags: int) -> Need | None:
    """Return what each match of a regular expression has; None: nothing is known. Raises re.error."""
    tree = parse_regex(re, pattern, flags)
    return _of_items(tree, bool(tree.state.flags & re.IGNORECASE))


def _of_items(items: Iterable[Any], ignores_case: bool) -> Need | None:
    needs, text = list[Need | None](), ""
    for operation, argument in items:
        name = operation.name
        if name == "LITERAL" and is_usable(chr(argument), ignores_case=ignores_case):
            text += fold(chr(argument))
            continue
        needs.append(need_of(text))
        text = ""
        needs.append(_of_item(name, argument, ignores_case))
    return all_of([*needs, need_of(text)])


def _of_item(name: str, argument: Any, ignores_case: bool) -> Need | None:
    match name:
        case "SUBPATTERN":
            _group, flags_on, flags_off, items = argument
            ignores = ignores_case or bool(flags_on & re.IGNORECASE)
            # Case that an inner group heeds again is ignored all the same: that finds more, never less.
            return _of_items(items, ignores or bool(flags_off & re.IGNORECASE))
        case "BRANCH":
            return any_of(_of_items(items, ignores_case) for items in argument[1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _most, items = argument
            return _of_items(items, ignores_case) if least else None
        case "ATOMIC_GROUP":
            return _of_items(argument, ignores_case)
        case _:
            return None


def is_usable(character: str, *, ignores_case: bool) -> bool:
    """Whether all characters that match a literal one are folded to the same.

    Without case, ``re`` takes further letters for equal, whose folding differs: only ASCII is certain.
    """
    return not ignores_case or character.isascii() or character.lower() == character.upper() == character
