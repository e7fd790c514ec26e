"""The page, or dialog, that asks before something is done and says what will come of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import render_template

from app.console.ui.listing import here


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    heading: str
    #: what it is done to
    subject: str
    #: what comes of it, a sentence each
    consequences: Sequence[str]
    #: text of the button that does it
    button: str
    #: ``primary``, ``warning`` or ``danger``
    kind: str = "primary"
    glyph: str = "check-lg"


def confirm_page(question: Question, *, back: str) -> str:
    """Render the question; its form is posted to the address of this page."""
    return render_template("confirm.html", question=question, action=here(), back=back)
