"""Form of the page that clears the log."""

from wtforms import HiddenField, SelectField

from app.console.ui.forms.base_form import ConsoleForm
from app.console.web.language import lazy_gettext as _l


class CleanForm(ConsoleForm):
    """Clear the log."""

    ALIASES = {"type": "kind"}

    job_group = HiddenField()
    job_id = HiddenField()
    kind = SelectField(_l("Runs to delete"), validate_choice=False)
