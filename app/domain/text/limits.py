"""Limits of entered texts: required, of a maximal length, of characters that every database stores."""

from app.domain.text.texts import N_, Text
from app.errors import InvalidInput

#: fewest characters of a secret: shorter ones would be masked where they are part of other words
SECRET_MIN = 8


def required_text(field: str, text: str, longest: int, message: Text) -> str:
    """Return the trimmed text; raises InvalidInput if it is empty or too long."""
    if not text.strip():
        raise InvalidInput(field, message)
    return limited_text(field, text.strip(), longest)


def limited_text(field: str, text: str, longest: int) -> str:
    """Return the text; raises InvalidInput if it is too long or has characters that cannot be stored."""
    if len(text) > longest:
        raise InvalidInput(
            field, N_("%(field)s must have at most %(limit)s characters", field=field, limit=longest)
        )
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput(field, N_("%(field)s holds a character that cannot be stored", field=field))
    return text
