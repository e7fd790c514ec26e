"""Form of a user."""

from wtforms import BooleanField, HiddenField, PasswordField, RadioField, StringField

from app.console.ui.forms.base_form import ConsoleForm
from app.console.web.language import lazy_gettext as _l
from app.domain.enums import Role


class UserForm(ConsoleForm):
    """Add or edit a user; rights are check boxes ``right=<group>:<right>``."""

    loaded = HiddenField()
    username = StringField(_l("User name"))
    password = PasswordField(_l("Password"))
    role = RadioField(_l("Role"), validate_choice=False, default="0")
    disabled = BooleanField(_l("Disabled"))
    #: checked rights
    rights: frozenset[str] = frozenset()

    def offer(self) -> None:
        """Fill the choices."""
        self.role.choices = [
            (str(int(Role.NORMAL)), str(_l("Normal user"))),
            (str(int(Role.ADMIN)), str(_l("Administrator"))),
        ]
