"""Scanner of placeholders: each from its ``${`` to its ``}``, in one pass, with errors for users.

```
placeholder = "${" ( time | name ) "}"
time        = "time" { step } [ "@" zone ] ( ":" pattern | ".epoch_ms" | ".epoch_s" )
name        = "job.id" | "job.name" | "run.id" | "shard.index" | "shard.total" | "var." NAME | "secret." NAME
            | ( "parent" | "parents." KEY ) ( ".result" | ".param" ) [ path ] [ ":-" default ]
            | "shards.results" [ path ] [ ":-" default ]
path        = { "." word | "[" [ "-" ] digits "]" | '["' any but '"' '"]' }
```

docs/parameters.md has the whole language.
"""

from typing import Final

from app.domain.parameters.errors import AT_MAX, InvalidTemplate, quote
from app.domain.parameters.placeholders import (
    Fact,
    FactValue,
    GivenValue,
    Origin,
    PathStep,
    Placeholder,
    Secret,
    VariableValue,
)
from app.domain.text.texts import N_, Text

OPEN: Final = "${"
CLOSE: Final = "}"
#: longest name of a variable or secret, and longest key of a job, in characters
NAME_MAX: Final = 64
KEY_MAX: Final = 120
#: most digits of a number
DIGITS_MAX: Final = 5
#: most steps of a path
PATH_MAX: Final = 16
_DIGITS: Final = frozenset("0123456789")
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NAME: Final = _LETTERS | _DIGITS | {"_"}
_FACTS: Final = {fact.value: fact for fact in Fact}
#: members of other runs -> whether it is their result
_MEMBERS: Final = {"result": True, "param": False}
#: what follows such a member: a path, a default, or the end
_AFTER_MEMBER: Final = frozenset(".[:}")


class Scanner:
    """Position in a text, from the ``${`` of one placeholder on."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.position = start + len(OPEN)

    def at(self) -> str:
        """Return the placeholder for an error: what was read of it, and up to the next ``}``."""
        longest = self.start + AT_MAX + 1
        end = self.text.find(CLOSE, self.position, longest)
        return quote(self.text[self.start : end + 1 if end >= 0 else longest])

    def is_closed(self) -> bool:
        """Whether there is a ``}`` after what was read."""
        return self.text.find(CLOSE, self.position) >= 0

    def error(self, message: Text) -> InvalidTemplate:
        """Return an error with the position of the placeholder."""
        return InvalidTemplate(message, position=self.start)

    def form_error(self) -> InvalidTemplate:
        """Return the error of what is no placeholder at all, or has no end."""
        if not self.is_closed():
            return self.error(N_("'%(at)s' has no end; add }", at=self.at()))
        return self.error(N_("'%(at)s' is not a placeholder; write $${ for a plain ${", at=self.at()))

    def peek(self) -> str:
        """Return the next character; empty at the end of the text."""
        return self.text[self.position : self.position + 1]

    def accept(self, literal: str) -> bool:
        """Read a literal text if it is next."""
        if not self.text.startswith(literal, self.position):
            return False
        self.position += len(literal)
        return True

    def take(self, characters: frozenset[str], limit: int) -> str:
        """Read the next characters that are among these, at most so many."""
        begin = end = self.position
        while end < len(self.text) and end - begin < limit and self.text[end] in characters:
            end += 1
        self.position = end
        return self.text[begin:end]

    def take_until(self, delimiter: str) -> str | None:
        """Read up to a delimiter and past it; None if there is none."""
        end = self.text.find(delimiter, self.position)
        if end < 0:
            return None
        begin, self.position = self.position, end + len(delimiter)
        return self.text[begin:end]

    def take_number(self) -> int | None:
        """Read digits; None if there are none, or too many."""
        digits = self.take(_DIGITS, DIGITS_MAX)
        return int(digits) if digits and self.peek() not in _DIGITS else None

    def source_text(self) -> str:
        """Return what was read of the placeholder."""
        return self.text[self.start : self.position]

    def require_end(self) -> str:
        """Read the ``}`` and return the whole placeholder as written."""
        if not self.accept(CLOSE):
            raise self.form_error()
        return self.source_text()


def scan_name(scanner: Scanner, *, with_param: bool) -> Placeholder:
    """Read a placeholder that is no time; ``with_param``: ``${param}`` is one."""
    for name, fact in _FACTS.items():
        if scanner.accept(name):
            return FactValue(scanner.require_end(), fact)
    if scanner.accept("var."):
        name = _scan_variable(scanner)
        return VariableValue(scanner.require_end(), name)
    if scanner.accept("secret."):
        name = _scan_variable(scanner)
        return Secret(scanner.require_end(), name)
    if scanner.accept("parents."):
        key, is_result = _scan_key(scanner)
        return _scan_given(scanner, Origin.PARENTS, key, is_result=is_result)
    for member, is_result in _MEMBERS.items():
        if scanner.accept(f"parent.{member}"):
            return _scan_given(scanner, Origin.PARENT, "", is_result=is_result)
    if scanner.accept("shards.results"):
        return _scan_given(scanner, Origin.SHARDS, "", is_result=True)
    if with_param and scanner.accept("param"):
        return _scan_given(scanner, Origin.OWN, "", is_result=False)
    raise scanner.form_error()


def _scan_variable(scanner: Scanner) -> str:
    if scanner.peek() not in _LETTERS:
        raise scanner.form_error()
    return scanner.take(_NAME, NAME_MAX)


def _scan_key(scanner: Scanner) -> tuple[str, bool]:
    """Read the key of a job and the member after it."""
    begin = scanner.position
    dot = scanner.text.find(".", begin + 1, begin + KEY_MAX + 1)
    while dot >= 0 and CLOSE not in scanner.text[begin:dot]:
        scanner.position = dot + 1
        for member, is_result in _MEMBERS.items():
            if scanner.accept(member) and scanner.peek() in _AFTER_MEMBER:
                return scanner.text[begin:dot], is_result
            scanner.position = dot + 1
        dot = scanner.text.find(".", dot + 1, begin + KEY_MAX + 1)
    scanner.position = begin
    raise scanner.form_error()


def _scan_given(scanner: Scanner, origin: Origin, key: str, *, is_result: bool) -> GivenValue:
    begin = scanner.position
    path: list[PathStep] = []
    while (step := _scan_path_step(scanner)) is not None:
        path.append(step)
        if len(path) > PATH_MAX:
            raise scanner.error(N_("'%(at)s': at most %(limit)s steps", at=scanner.at(), limit=PATH_MAX))
    path_text = scanner.text[begin : scanner.position].removeprefix(".")
    default = None
    if origin is not Origin.OWN and scanner.accept(":-"):
        default = scanner.take_until(CLOSE)
        if default is None:
            raise scanner.form_error()
    elif not scanner.accept(CLOSE):
        raise _path_error(scanner)
    return GivenValue(scanner.source_text(), origin, key, is_result, tuple(path), path_text, default)


def _scan_path_step(scanner: Scanner) -> PathStep | None:
    """Read one step of a path; None if there is none."""
    step: PathStep | None = None
    if scanner.accept("."):
        begin = scanner.position
        while scanner.peek().isalnum() or scanner.peek() in ("_", "-"):
            scanner.position += 1
        step = scanner.text[begin : scanner.position] or None
    elif scanner.accept('["'):
        name = scanner.take_until('"')
        step = name if scanner.accept("]") else None
    elif scanner.accept("["):
        sign = -1 if scanner.accept("-") else 1
        number = scanner.take_number()
        step = sign * number if number is not None and scanner.accept("]") else None
    else:
        return None
    if step is None:
        raise _path_error(scanner)
    return step


def _path_error(scanner: Scanner) -> InvalidTemplate:
    if not scanner.is_closed():
        return scanner.form_error()
    return scanner.error(N_("'%(at)s': write a path as result.rows[0].id", at=scanner.at()))
