"""Templates: parameters with placeholders, parsed once and filled in for each run.

```
template = { literal | "$${" | placeholder }
```

``$${`` is a plain ``${``, and a ``$`` alone is itself. docs/parameters.md has the whole language.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.domain.parameters.errors import InvalidTemplate, quote
from app.domain.parameters.filling import FilledText, fill_pieces, preview_pieces
from app.domain.parameters.json_values import find_contexts, find_fragment
from app.domain.parameters.placeholders import (
    GivenValue,
    Names,
    Origin,
    Piece,
    Placeholder,
    Secret,
    Unknown,
    VariableValue,
    names_of,
)
from app.domain.parameters.scanner import CLOSE, OPEN, Scanner, scan_name
from app.domain.parameters.time_scanner import scan_time
from app.domain.parameters.values import Values
from app.domain.text.texts import N_

#: longest template that can be entered, in characters; an adopted one may be longer
TEMPLATE_MAX: Final = 2_048
#: most placeholders of a template
PLACEHOLDERS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts and placeholders in their order, and the position of each in the text."""

    pieces: tuple[Piece, ...]
    positions: tuple[int, ...]
    #: of each piece whether it begins inside of a JSON string; None: the text is not JSON as a whole
    contexts: tuple[bool, ...] | None
    _names: Names

    def names(self) -> Names:
        """Return what the placeholders refer to."""
        return self._names

    def fill(self, values: Values) -> FilledText:
        """Return the text for one run, secrets still as placeholders; raise NotFilled."""
        return fill_pieces(self.pieces, self.contexts, values)

    def preview(self, values: Values, unknown: Collection[Unknown]) -> str:
        """Return the text of a run to come, for people; raise NotFilled.

        It has ``‹secret NAME›`` for secrets, and ``‹parent.result›`` for what only the run itself will have.
        """
        return preview_pieces(self.pieces, self.contexts, values, unknown)


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Names that the placeholders of a job may use."""

    variables: Collection[str]
    #: None: secrets cannot stand here, as in a text that is given with a trigger
    secrets: Collection[str] | None
    #: keys and ids of the jobs that the job runs after
    parents: Collection[str]


def parse(text: str, *, with_param: bool = False) -> Template:
    """Return the template of a text; raise InvalidTemplate. ``with_param``: ``${param}`` is a placeholder."""
    return (_parse_short if len(text) <= TEMPLATE_MAX else _parse)(text, with_param=with_param)


def check_names(template: Template, known_names: KnownNames) -> None:
    """Raise InvalidTemplate for the first name that the job may not use."""
    for piece, position in zip(template.pieces, template.positions, strict=True):
        message = None
        match piece:
            case VariableValue(at, name) if name not in known_names.variables:
                message = N_("'%(at)s': variable %(name)s does not exist here", at=quote(at), name=name)
            case Secret(at) if known_names.secrets is None:
                message = N_("'%(at)s': secrets can only stand in the job's own parameter", at=quote(at))
            case Secret(at, name) if name not in (known_names.secrets or ()):
                message = N_("'%(at)s': secret %(name)s does not exist here", at=quote(at), name=name)
            case GivenValue(at, Origin.PARENTS, key) if key not in known_names.parents:
                message = N_("'%(at)s': the job does not run after %(name)s", at=quote(at), name=key)
        if message is not None:
            raise InvalidTemplate(message, position=position)


def has_placeholder(text: str) -> bool:
    """Whether a text holds a placeholder, so that the switch of the job can be offered."""
    for position in _openings(text):
        try:
            _scan(Scanner(text, position), with_param=False)
        except InvalidTemplate:
            continue
        return True
    return False


def _openings(text: str) -> list[int]:
    """Return the positions of each ``${`` that is not escaped and may have an end."""
    positions = []
    last = text.rfind(CLOSE)
    opening = text.find(OPEN)
    while 0 <= opening < last:
        if text[opening - 1 : opening] != "$":
            positions.append(opening)
        opening = text.find(OPEN, opening + len(OPEN))
    return positions


def _parse(text: str, *, with_param: bool) -> Template:
    pieces: list[Piece] = []
    positions: list[int] = []
    count = begin = 0
    opening = text.find(OPEN)
    while opening >= 0:
        if text[max(opening - 1, begin) : opening] == "$":
            pieces.append(text[begin : opening - 1] + OPEN)
            positions.append(begin)
            begin = opening + len(OPEN)
        else:
            count += 1
            if count > PLACEHOLDERS_MAX:
                message = N_("at most %(limit)s placeholders", limit=PLACEHOLDERS_MAX)
                raise InvalidTemplate(message, position=opening)
            scanner = Scanner(text, opening)
            pieces += [text[begin:opening], _scan(scanner, with_param=with_param)]
            positions += [begin, opening]
            begin = scanner.position
        opening = text.find(OPEN, begin)
    pieces.append(text[begin:])
    positions.append(begin)
    contexts = find_contexts(pieces)
    _check_json(pieces, positions, contexts)
    return Template(tuple(pieces), tuple(positions), contexts, names_of(pieces))


_parse_short = lru_cache(maxsize=1_024)(_parse)


def _scan(scanner: Scanner, *, with_param: bool) -> Placeholder:
    return scan_time(scanner) or scan_name(scanner, with_param=with_param)


def _check_json(pieces: list[Piece], positions: list[int], contexts: tuple[bool, ...] | None) -> None:
    """Raise InvalidTemplate for a placeholder that is only a part of a number or of an escape of JSON."""
    number = None if contexts is None else find_fragment(pieces, contexts)
    if number is None:
        return
    piece = pieces[number]
    at = "" if isinstance(piece, str) else quote(piece.at)
    message = N_("'%(at)s' is only a part of a JSON value; put the whole value in quotes", at=at)
    raise InvalidTemplate(message, position=positions[number])
