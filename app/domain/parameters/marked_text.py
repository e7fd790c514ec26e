"""Marked text: what is sent with a run, but for its secrets, which are still placeholders.

Each ``${`` that came from a value or an escape is written ``$${``, so that ``${secret.NAME}`` is the only
placeholder in it, and no value can name a secret. A ``$`` right before a secret, which would escape it, is
written into it: ``${secret.$NAME}``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from app.domain.parameters.errors import NotFilled
from app.domain.parameters.json_values import find_contexts, quoted_json
from app.domain.parameters.placeholders import Secret
from app.domain.parameters.scanner import CLOSE, NAME_MAX, OPEN
from app.domain.runs.trace_templates import FILLED_TOO_LONG, NO_SECRET, SECRET_SEALED, fill

#: most bytes that are sent, in UTF-8
FILLED_MAX: Final = 60_000
#: most bytes of a character
BYTES_MAX: Final = 4
ESCAPE: Final = "$${"
_SECRET: Final = "${secret."


def escape(text: str) -> str:
    """Return a text in which nothing is a placeholder."""
    return text.replace(OPEN, ESCAPE)


def mark(pieces: Iterable[str | Secret]) -> str:
    """Return texts and secrets as one marked text."""
    parts: list[str] = []
    # Texts are joined first: a $ may end one and a { begin the next.
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(piece)
            continue
        text = "".join(texts)
        texts = []
        plain = text.rstrip("$")
        parts.append(f"{escape(plain)}{_SECRET}{text[len(plain) :]}{piece.name}{CLOSE}")
    return "".join([*parts, escape("".join(texts))])


def secrets_of(text: str) -> frozenset[str]:
    """Return the names of the secrets in a marked text."""
    return frozenset(piece.name for piece in _pieces(text) if isinstance(piece, Secret))


def fill_secrets(text: str, secrets: Mapping[str, str | None]) -> str:
    """Return what is sent: a marked text with the values of its secrets; raise NotFilled.

    ``secrets``: name -> value, None for one that cannot be opened. In JSON a value is escaped as elsewhere.
    """
    pieces = list(_pieces(text))
    contexts = find_contexts(pieces) if any(isinstance(piece, Secret) for piece in pieces) else None
    texts = []
    for number, piece in enumerate(pieces):
        if isinstance(piece, Secret):
            texts.append(_text_of(_value(piece, secrets), None if contexts is None else contexts[number]))
        else:
            texts.append(piece)
    param = "".join(texts)
    check_size(param)
    return param


def display(text: str) -> str:
    """Return a marked text for people: with ‹secret NAME› for secrets."""
    return "".join(
        secret_label(piece.name) if isinstance(piece, Secret) else piece for piece in _pieces(text)
    )


def secret_label(name: str) -> str:
    """Return what people are shown in place of the value of a secret."""
    return f"‹secret {name}›"


def may_name_secret(template: str) -> bool:
    """Whether a template, or the marked text that was made of it, may have a secret in it."""
    return _SECRET in template


def unmark(text: str) -> str:
    """Return a marked text without its escapes, in which a secret is the text ``${secret.NAME}``."""
    return "".join(piece.at if isinstance(piece, Secret) else piece for piece in _pieces(text))


def check_size(text: str) -> None:
    """Raise NotFilled for a text that is too long to be sent."""
    if len(text) > FILLED_MAX or len(text.encode("utf-8", "replace")) > FILLED_MAX:
        raise NotFilled(fill(FILLED_TOO_LONG))


def _value(secret: Secret, secrets: Mapping[str, str | None]) -> str:
    if secret.name not in secrets:
        raise NotFilled(fill(NO_SECRET, at=secret.at, name=secret.name))
    value = secrets[secret.name]
    if value is None:
        raise NotFilled(fill(SECRET_SEALED, at=secret.at, name=secret.name))
    return value


def _text_of(value: str, is_inside: bool | None) -> str:
    """Return the value of a secret; ``is_inside``: of a JSON string, None where it is no JSON."""
    if is_inside is None:
        return value
    return quoted_json(value)[1:-1] if is_inside else quoted_json(value)


def _pieces(text: str) -> Iterator[str | Secret]:
    """Yield texts and secrets; what is neither an escape nor a secret is text."""
    begin = 0
    opening = text.find(OPEN)
    while opening >= 0:
        if opening > begin and text[opening - 1] == "$":
            yield text[begin : opening - 1] + OPEN
            begin = opening + len(OPEN)
        elif (name := _secret_at(text, opening)) is not None:
            plain = name.lstrip("$")
            yield text[begin:opening] + name[: len(name) - len(plain)]
            yield Secret(f"{_SECRET}{plain}{CLOSE}", plain)
            begin = opening + len(_SECRET) + len(name) + len(CLOSE)
        opening = text.find(OPEN, max(begin, opening + len(OPEN)))
    yield text[begin:]


def _secret_at(text: str, opening: int) -> str | None:
    """Return the name of the secret at a ``${``, with the ``$`` before it; None if there is none."""
    if not text.startswith(_SECRET, opening):
        return None
    begin = opening + len(_SECRET)
    first = begin
    while text.startswith("$", first):
        first += 1
    end = text.find(CLOSE, first, first + NAME_MAX + 1)
    name = text[first:end] if end >= 0 else ""
    is_name = name.isascii() and name.replace("_", "0").isalnum() and name[:1].isalpha()
    return text[begin:end] if is_name else None
