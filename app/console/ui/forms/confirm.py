"""Confirmation page or dialog with the consequences of an action."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import render_template

from app.console.ui.lists.listing import here


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a confirmation page."""

    heading: str
    #: object of the action
    subject: str
    #: consequences, a sentence each
    consequences: Sequence[str]
    #: label of the button
    button: str
    #: ``primary``, ``warning`` or ``danger``
    kind: str = "primary"
    glyph: str = "check-lg"
    #: link to what has to be done first, text and URL; the button is then left out
    first: tuple[str, str] | None = None
    #: box that can be ticked: its name in the form, and its label
    option: tuple[str, str] | None = None
    #: label of the link that changes nothing; empty: Cancel
    back_text: str = ""


def confirm_page(question: Question, *, back: str) -> str:
    """Render the question; its form is posted to the URL of this page."""
    return render_template("confirm.html", question=question, action=here(), back=back)
