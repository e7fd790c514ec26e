"""Form of the mute page."""

from wtforms import RadioField, StringField

from app.console.ui.base_form import ConsoleForm
from app.console.web.language import lazy_gettext as _l


class MuteForm(ConsoleForm):
    """Mute the alarms of a job or of an executor group."""

    span = RadioField(_l("For how long"), validate_choice=False)
    reason = StringField(_l("Reason"))
