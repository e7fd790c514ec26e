"""Scanner of times: steps, zone, and a date pattern or the unit of a number.

```
step    = ( "+" | "-" ) digits ( "y" | "M" | "w" | "d" | "h" | "m" | "s" )
        | "." ( "year" | "quarter" | "month" | "week" | "day" | "hour" ) "." ( "first" | "last" )
pattern = { letters | "'" text "'" | "''" | any other character but "}" }
```
"""

from typing import Final

from app.domain.parameters.date_patterns import WEEK_YEAR, WEEKS, is_known
from app.domain.parameters.errors import InvalidTemplate, quote
from app.domain.parameters.placeholders import Edge, Epoch, Letters, Period, Shift, TimeValue
from app.domain.parameters.scanner import CLOSE, Scanner
from app.domain.text.texts import N_
from app.settings.parsers import is_zone

#: most steps of a time
STEPS_MAX: Final = 8
_UNITS: Final = {
    "y": Shift(months=12),
    "M": Shift(months=1),
    "w": Shift(days=7),
    "d": Shift(days=1),
    "h": Shift(seconds=3_600),
    "m": Shift(seconds=60),
    "s": Shift(seconds=1),
}
_EDGES: Final = {
    f".{period}.{word}": Edge(period, is_last)
    for period in Period
    for word, is_last in (("first", False), ("last", True))
}
_EPOCHS: Final = {f".{unit}": unit for unit in Epoch}
#: what a step or zone ends at
_ENDS: Final = frozenset("+-.@:}")
_ZONE_ENDS: Final = frozenset(".:}")


def scan_time(scanner: Scanner) -> TimeValue | None:
    """Read a time; None, and nothing read, if the placeholder is none."""
    begin = scanner.position
    if not scanner.accept("time") or scanner.peek() not in _ENDS:
        scanner.position = begin
        return None
    steps: list[Shift | Edge] = []
    epoch = _scan_epoch(scanner)
    while epoch is None and scanner.peek() in ("+", "-", "."):
        steps.append(_scan_step(scanner))
        if len(steps) > STEPS_MAX:
            message = N_("'%(at)s': at most %(limit)s steps", at=scanner.at(), limit=STEPS_MAX)
            raise scanner.error(message)
        epoch = _scan_epoch(scanner)
    zone = ""
    if epoch is None and scanner.accept("@"):
        zone = _scan_zone(scanner)
        epoch = _scan_epoch(scanner)
    if epoch is not None:
        return TimeValue(scanner.require_end(), tuple(steps), zone, epoch)
    if scanner.peek() == ".":
        raise _step_error(scanner)
    if not scanner.accept(":"):
        raise scanner.form_error()
    tokens = _scan_pattern(scanner)
    return TimeValue(scanner.source_text(), tuple(steps), zone, tokens)


def _scan_epoch(scanner: Scanner) -> Epoch | None:
    for symbol, unit in _EPOCHS.items():
        if scanner.text.startswith(symbol + CLOSE, scanner.position):
            scanner.accept(symbol)
            return unit
    return None


def _scan_step(scanner: Scanner) -> Shift | Edge:
    for symbol, edge in _EDGES.items():
        if scanner.accept(symbol):
            if scanner.peek() not in _ENDS:
                scanner.position -= len(symbol)
                raise _step_error(scanner)
            return edge
    begin = scanner.position
    sign = {"+": 1, "-": -1}.get(scanner.peek())
    if sign is not None:
        scanner.position += 1
        number = scanner.take_number()
        unit = _UNITS.get(scanner.peek())
        if number is not None and unit is not None:
            scanner.position += 1
            count = sign * number
            return Shift(count * unit.months, count * unit.days, count * unit.seconds)
    scanner.position = begin
    raise _step_error(scanner)


def _step_error(scanner: Scanner) -> InvalidTemplate:
    """Return the error of the step that is next."""
    if not scanner.is_closed():
        return scanner.form_error()
    begin = scanner.position
    end = begin + 1
    while scanner.text[end] not in _ENDS:
        end += 1
    if scanner.text[begin] == scanner.text[end] == ".":
        # A period and its word are one step, such as .month.third.
        end += 1
        while scanner.text[end] not in _ENDS:
            end += 1
    return scanner.error(
        N_(
            "'%(step)s' in '%(at)s' is not a step; write for example time-1d or time.month.first",
            step=quote(scanner.text[begin:end]),
            at=scanner.at(),
        )
    )


def _scan_zone(scanner: Scanner) -> str:
    begin = scanner.position
    while scanner.peek() and scanner.peek() not in _ZONE_ENDS:
        scanner.position += 1
    name = scanner.text[begin : scanner.position]
    if not scanner.peek():
        raise scanner.form_error()
    if not is_zone(name):
        raise scanner.error(
            N_(
                "'%(name)s' is not a known time zone; use a name such as Asia/Shanghai or UTC",
                name=quote(name),
            )
        )
    return name


def _scan_pattern(scanner: Scanner) -> tuple[Letters | str, ...]:
    """Read a pattern and the ``}`` after it."""
    tokens: list[Letters | str] = []
    while not scanner.accept(CLOSE):
        character = scanner.peek()
        if not character:
            raise scanner.form_error()
        if character == "'":
            tokens.append(_scan_quoted(scanner))
        elif character.isascii() and character.isalpha():
            tokens.append(_scan_letters(scanner, character))
        else:
            tokens.append(character)
            scanner.position += 1
    letters = {token.text for token in tokens if isinstance(token, Letters)}
    if WEEK_YEAR in letters and not letters & WEEKS:
        raise scanner.error(
            N_("'YYYY' in '%(at)s' is the year of the week; write yyyy", at=quote(scanner.source_text()))
        )
    return tuple(tokens)


def _scan_quoted(scanner: Scanner) -> str:
    """Read a quoted text; two quotes are one quote, inside as well."""
    scanner.accept("'")
    if scanner.accept("'"):
        return "'"
    parts: list[str] = []
    while (part := scanner.take_until("'")) is not None:
        parts.append(part)
        if not scanner.accept("'"):
            return "".join(parts)
        parts.append("'")
    raise _letters_error(scanner, "'")


def _scan_letters(scanner: Scanner, letter: str) -> Letters:
    begin = scanner.position
    while scanner.peek() == letter:
        scanner.position += 1
    letters = scanner.text[begin : scanner.position]
    if not is_known(letters):
        raise _letters_error(scanner, letters)
    return Letters(letters)


def _letters_error(scanner: Scanner, letters: str) -> InvalidTemplate:
    if not scanner.is_closed():
        return scanner.form_error()
    return scanner.error(
        N_(
            "'%(letters)s' in '%(at)s' is not a letter of a date pattern",
            letters=quote(letters),
            at=scanner.at(),
        )
    )
