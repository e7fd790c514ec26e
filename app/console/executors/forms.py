"""Form of an executor group."""

from wtforms import BooleanField, HiddenField, PasswordField, RadioField, StringField, TextAreaField

from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.promise_fields import PROMISE_INPUTS, PromiseFields
from app.console.web.language import lazy_gettext as _l
from app.domain.enums import AddressType


class TokenForm(ConsoleForm):
    """Confirm the login before the access token is shown."""

    password = PasswordField(_l("Your password"))


class AppNameForm(ConsoleForm):
    """Add an executor group by its AppName alone."""

    app_name = StringField("AppName")


class GroupForm(PromiseFields):
    """Add or edit an executor group."""

    ORDER = (
        *("app_name", "title", "address_type", "address_list", "access_token", "drop_token", "max_running"),
        "alarm_urls",
        *PROMISE_INPUTS,
    )

    app_name = StringField("AppName")
    title = StringField(_l("Title"))
    address_type = RadioField(_l("Registration"), validate_choice=False, default="0")
    address_list = TextAreaField(_l("Addresses"))
    access_token = PasswordField(_l("Access token"))
    max_running = StringField(_l("Most runs at once"))
    drop_token = BooleanField(_l("Remove the token and use the console's"))
    alarm_urls = TextAreaField(_l("Apprise URLs"))
    loaded = HiddenField()

    def offer(self) -> None:
        """Fill the choices."""
        self.address_type.choices = [
            (str(int(AddressType.AUTOMATIC)), str(_l("automatic"))),
            (str(int(AddressType.MANUAL)), str(_l("manual"))),
        ]
