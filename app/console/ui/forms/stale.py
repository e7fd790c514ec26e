"""Stale forms: a save detects that others have changed the values which its form was filled from.

The form sends back the fingerprint of that; one without it, as scripts send it, is saved in any case.
"""

from dataclasses import dataclass

from flask import request

from app.clock import Millis
from app.console.ui.filters import absolute
from app.console.ui.forms.base_form import ConsoleForm
from app.console.web.current import translate
from app.domain.text.texts import N_
from app.errors import ChangedMeanwhile

#: field with the fingerprint
FIELD = "loaded"


@dataclass(frozen=True, slots=True)
class LastChange:
    """Last change of what a form edits."""

    username: str
    at_ms: Millis


def form_fingerprint() -> str:
    """Return the fingerprint in the form of the request; empty without one."""
    return request.form.get(FIELD, "")


def refuse(form: ConsoleForm, error: ChangedMeanwhile, last: LastChange | None, href: str) -> None:
    """Show that others have changed what is at ``href``; the form, sent again, overwrites their change.

    A password or token in it has to be entered again.
    """
    form[FIELD].data, form.stored_href = error.present, href
    texts: list[str] = [error.args[0]]
    if last is not None and last.username:
        time = absolute(last.at_ms)
        texts.append(N_("The last change is by %(user)s at %(time)s.", user=last.username, time=time))
    texts.append(N_("Nothing was saved. Save again to overwrite the change with what is entered here."))
    form.form_errors += [translate(text) for text in texts]
    form.ask_again()
