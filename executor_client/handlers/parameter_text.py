"""Parser of parameter texts: ``{"day": "2026-01-31"}``, ``["2026-01-31"]`` or ``day=2026-01-31, limit=5``."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: value of a word that is no JSON array or object
NO_JSON = object()

_NAME = re.compile(r"([A-Za-z_]\w*)[ \t]*=[ \t]*")
_BLANKS = re.compile(r"\s*")
_PLAIN_WORD = re.compile(r"[^\s,&]*")


class UnreadableText(ValueError):
    """The text has none of the accepted forms; the message names the position."""


@dataclass(frozen=True, slots=True)
class Word:
    """Value in a text that is not JSON: its characters, and its JSON array or object if it is one."""

    raw: str
    json: Any = NO_JSON


#: name, None for a positional value, and the value
NamedValue = tuple[str | None, Any]


def read_values(text: str) -> list[NamedValue]:
    """Return the values of a text, words as ``Word``; raise UnreadableText."""
    text = text.strip()
    if not text.startswith(("{", "[")):
        return list(_words(text))
    value = read_json(text)
    return list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]


def read_json(text: str) -> Any:
    """Return the value of a JSON text; raise UnreadableText, also for a name given twice."""
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as exc:
        raise UnreadableText(
            f"not valid JSON: {exc.msg} at line {exc.lineno}, column {exc.colno};"
            " expected a JSON object or array, or name=value"
        ) from exc
    except UnreadableText:
        raise
    except ValueError as exc:
        raise UnreadableText("not valid JSON: a number has too many digits") from exc
    except RecursionError as exc:
        raise UnreadableText("nested too deeply") from exc


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise UnreadableText(f"{twice!r} is given twice in a JSON object")
    return members


def _refuse(constant: str) -> Any:
    raise UnreadableText(f"{constant} is not valid JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_without_repetition, parse_constant=_refuse)


def _words(text: str) -> Iterator[NamedValue]:
    """Split at commas, ``&`` and blanks. Between two commas there has to be a value."""
    position = 0
    while position < len(text):
        if text[position] in ",&":
            raise UnreadableText(f'no value before {text[position]!r} at character {position + 1}; write ""')
        name_match = _NAME.match(text, position)
        word, position = _word(text, name_match.end() if name_match else position)
        yield (name_match[1] if name_match else None), word
        position = _end(_BLANKS, text, position)
        if position < len(text) and text[position] in ",&":
            position = _end(_BLANKS, text, position + 1)


def _word(text: str, start: int) -> tuple[Word, int]:
    """Return the value that starts at a position, and its end."""
    if text[start : start + 1] in ('"', "'"):
        return _quoted_word(text, start)
    if text[start : start + 1] in ("[", "{"):
        try:
            value, end = _decoder.raw_decode(text, start)
        except UnreadableText:
            raise
        except (ValueError, RecursionError):
            pass  # plain text that only begins like JSON
        else:
            if _is_end(text, end):
                return Word(text[start:end], value), end
    end = _end(_PLAIN_WORD, text, start)
    return Word(text[start:end]), end


def _quoted_word(text: str, start: int) -> tuple[Word, int]:
    """Read a value in quotes, in which a doubled quote stands for one."""
    quote = text[start]
    match = re.compile(f"{quote}((?:[^{quote}]|{quote}{quote})*){quote}").match(text, start)
    if match is None:
        raise UnreadableText(f"the quote {quote} at character {start + 1} is not closed")
    if not _is_end(text, match.end()):
        raise UnreadableText(f"text follows the quote {quote} at character {match.end()}; expected a comma")
    return Word(match[1].replace(quote * 2, quote)), match.end()


def _is_end(text: str, position: int) -> bool:
    return position == len(text) or text[position] in ",&" or text[position].isspace()


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start
