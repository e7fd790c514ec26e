"""Base form: shows the refusals of services at their fields; each area has its own forms."""

import re
from collections.abc import Mapping

from wtforms import Form
from wtforms.fields.core import Field

from app.console.web import refused
from app.console.web.current import translate
from app.domain.texts import N_
from app.errors import InvalidInput

#: field names of the services (the original's) -> names in forms
SERVICE_FIELDS = {
    "child_job_id": "child_jobid",
    "appname": "app_name",
    "user_name": "username",
    "retry_count": "executor_fail_retry_count",
}


class ConsoleForm(Form):
    """Form that shows the errors of services at its fields."""

    #: further service names of fields of this form
    ALIASES: Mapping[str, str] = {}

    def refuse(self, error: InvalidInput) -> None:
        """Show the error at its field, or above the form."""
        refused.note_error(error)
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.field).lower()
        name = self.ALIASES.get(snake, SERVICE_FIELDS.get(snake, snake))
        field: Field | None = self._fields.get(name)
        if field is None or field.type == "HiddenField":
            self.form_errors.append(translate(error.message))
        else:
            field.errors = [*field.errors, translate(error.message)]


def whole(field: Field, *, least: int = 0) -> int:
    """Return the number in a text field, ``least`` if empty; raises InvalidInput."""
    text = (field.data or "").strip()
    if not text:
        return least
    if re.fullmatch(r"[0-9]{1,9}", text) is None or int(text) < least:
        raise InvalidInput(field.name, N_("Enter a whole number of at least %(least)s", least=least))
    return int(text)
