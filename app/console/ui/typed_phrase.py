"""Typed confirmation: a user types the number of rows before a large deletion."""

from flask import request

from app.domain.texts import N_
from app.errors import InvalidInput

#: the field it is typed into
FIELD = "typed"


def deletion_phrase(count: int) -> str:
    """``delete 12``: the same in every language, so that it can be typed on every keyboard."""
    return f"delete {count}"


def require_phrase(phrase: str) -> None:
    """Raise InvalidInput unless the form holds the phrase, in whatever case."""
    if " ".join(request.form.get(FIELD, "").lower().split()) != phrase:
        raise InvalidInput(FIELD, N_("Type %(phrase)s to continue", phrase=phrase))
