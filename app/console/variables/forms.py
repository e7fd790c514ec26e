"""Forms of variables and secrets; what is entered for a secret is never sent back."""

from wtforms import HiddenField, PasswordField, SelectField, StringField, TextAreaField

from app.console.ui.forms.base_form import AGAIN, ConsoleForm
from app.console.ui.forms.picked_ids import picked_ids
from app.console.web.language import lazy_gettext as _l
from app.errors import InvalidInput
from app.services.variables.variables import VariableDraft


class SecretArea(TextAreaField):
    """Text of several lines, such as a private key, that a page does not send back."""

    def _value(self) -> str:
        return ""


class VariableForm(ConsoleForm):
    """Add or change a variable or secret."""

    ORDER = ("group", "name", "value", "secret", "allowed", "password")

    loaded = HiddenField()
    group = SelectField(_l("Executor"), validate_choice=False)
    name = StringField(_l("Name"))
    value = TextAreaField(_l("Value"))
    secret = SecretArea(_l("Secret"))
    allowed = StringField(_l("Executors that may use it"))
    password = PasswordField(_l("Your password"))
    #: id of what was added
    made_id = 0

    def draft(self, *, is_secret: bool, names_groups: bool, keeps: bool, fingerprint: str) -> VariableDraft:
        """Return what was entered; ``keeps``: an empty secret keeps the stored one."""
        secret = (self.secret.data or "").replace("\r\n", "\n")
        return VariableDraft(
            self.name.data or "",
            value=None if is_secret else (self.value.data or "").replace("\r\n", "\n"),
            secret=(secret or None if keeps else secret) if is_secret else None,
            allowed=picked_ids(self.allowed.data) if names_groups else None,
            loaded=fingerprint,
            is_confirmed=True,
        )

    def ask_again(self) -> None:
        """Show at the secret, too, that it has to be entered again."""
        super().ask_again()
        if self.secret.data and not self.secret.errors:
            self.refuse(InvalidInput("secret", AGAIN))
