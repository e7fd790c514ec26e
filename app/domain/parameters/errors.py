"""Errors of the placeholder language: what is wrong in a text, and what a run does not have."""

from app.domain.text.texts import Text

#: longest placeholder that an error repeats, in characters
AT_MAX = 100


class InvalidTemplate(ValueError):
    """A text is no template: with the position of its placeholder, counted in characters from 0."""

    def __init__(self, message: Text, *, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class NotFilled(ValueError):
    """A template cannot be filled in for a run; the message is complete: ``parameter not filled: …``."""

    def __init__(self, message: Text) -> None:
        super().__init__(message)
        self.message = message


def quote(placeholder: str) -> str:
    """Return a placeholder for an error: in one line, and not too long."""
    line = " ".join(placeholder[: AT_MAX + 1].split())
    return line if len(placeholder) <= AT_MAX else f"{line[:AT_MAX]}…"
