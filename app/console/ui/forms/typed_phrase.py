"""Typed confirmation: a user types the number of rows before a large deletion."""

from flask import request

from app.domain.text.texts import N_
from app.errors import InvalidInput

#: name of the input
FIELD = "typed"


def deletion_phrase(count: int) -> str:
    """Return ``delete 12``: the same in every language, so that it can be typed on every keyboard."""
    return f"delete {count}"


def require_phrase(phrase: str) -> None:
    """Raise InvalidInput unless the form contains the phrase, ignoring case."""
    if " ".join(request.form.get(FIELD, "").lower().split()) != phrase:
        raise InvalidInput(FIELD, N_("Type %(phrase)s to continue", phrase=phrase))
