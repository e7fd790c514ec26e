"""Base form: shows the refusals of services at their fields; each area has its own forms."""

import re
from collections.abc import Mapping

from wtforms import Form, PasswordField
from wtforms.fields.core import Field

from app.console.web import refusals
from app.console.web.current import translate
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: field names of the services (the original's) -> names in forms
SERVICE_FIELDS = {
    "child_job_id": "child_jobid",
    "appname": "app_name",
    "user_name": "username",
    "retry_count": "executor_fail_retry_count",
}

#: error at a secret, which a page does not send back
AGAIN = N_("Enter it again")


class ConsoleForm(Form):
    """Form that shows the errors of services at its fields."""

    #: further service names of fields of this form
    ALIASES: Mapping[str, str] = {}
    #: names of the fields in the order of the page; empty: as declared
    ORDER: tuple[str, ...] = ()
    #: link to the stored values, for a stale form; see ``stale``
    stored_href = ""

    def refuse(self, error: InvalidInput) -> None:
        """Show each error at its field, or above the form, and focus the first field that has one."""
        refusals.note_error(error)
        for item in error.errors:
            field, text = self.field_at(item.field), translate(item.message)
            if field is None or field.type == "HiddenField":
                self.form_errors.append(text)
            elif text not in field.errors:
                field.errors = [*field.errors, text]
        for number, wrong in enumerate(self.wrong_fields):
            wrong.render_kw = {**(wrong.render_kw or {}), "autofocus": number == 0}

    def ask_again(self) -> None:
        """Show at each secret that was entered that it has to be entered again: pages do not send it back."""
        for field in self:
            if isinstance(field, PasswordField) and field.data and not field.errors:
                self.refuse(InvalidInput(field.name, AGAIN))

    def field_at(self, name: str) -> Field | None:
        """Return the field that a service calls ``name``, None for one that the form does not have."""
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        field: Field | None = self._fields.get(self.ALIASES.get(snake, SERVICE_FIELDS.get(snake, snake)))
        return field

    @property
    def wrong_fields(self) -> list[Field]:
        """Fields with errors, in the order of the page."""
        names = self.ORDER or tuple(self._fields)
        return [self._fields[name] for name in names if self._fields[name].errors]


def keep_line_ends(field: Field) -> None:
    """Give a text that was sent the line ends that its field was filled with, which browsers change."""
    field.data = _with_line_ends(field.data or "", field.object_data or "")


def _with_line_ends(new_text: str, old_text: str) -> str:
    """Return a text that was sent with the line ends of the stored one; without any, as it was sent."""
    text = new_text.replace("\r\n", "\n")
    if text == old_text.replace("\r\n", "\n"):
        return old_text
    if "\n" not in old_text:
        return new_text
    return text.replace("\n", "\r\n") if "\r\n" in old_text else text


def whole(field: Field, *, low: int, high: int) -> int:
    """Return the number in a text field, ``low`` if empty; raises InvalidInput."""
    text = (field.data or "").strip()
    if not text:
        return low
    if re.fullmatch(r"[0-9]{1,10}", text) is None or not low <= int(text) <= high:
        raise InvalidInput(
            field.name,
            N_('"%(value)s" is not a whole number from %(low)s to %(high)s', value=text, low=low, high=high),
        )
    return int(text)
