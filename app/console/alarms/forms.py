"""Form of the mute page."""

from wtforms import RadioField, StringField

from app.console.ui.base_form import ConsoleForm
from app.console.web.language import lazy_gettext as _l


class MuteForm(ConsoleForm):
    """Length of a mute, and the reason."""

    span = RadioField(_l("Mute for"), validate_choice=False)
    reason = StringField(_l("Reason"))
