"""Forms of the user's own account: password and settings."""

from wtforms import PasswordField, SelectField

from app.console.ui.base_form import ConsoleForm
from app.console.web.language import lazy_gettext as _l


class PasswordForm(ConsoleForm):
    """Change the user's own password."""

    ALIASES = {"password": "new_password"}

    old_password = PasswordField(_l("Old password"))
    new_password = PasswordField(_l("New password"))
    repeated = PasswordField(_l("New password again"))


class SettingsForm(ConsoleForm):
    """The user's language and time zone."""

    language = SelectField(_l("Language"), validate_choice=False)
    time_zone = SelectField(_l("Time zone"), validate_choice=False)
