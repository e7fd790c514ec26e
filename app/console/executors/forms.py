"""Form of an executor group."""

from wtforms import (
    BooleanField,
    HiddenField,
    PasswordField,
    RadioField,
    SelectField,
    StringField,
    TextAreaField,
)

from app.console.ui import labels
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.promise_fields import PROMISE_INPUTS, PromiseFields
from app.console.web.language import lazy_gettext as _l
from app.domain.archive.kinds import KEEPING
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
        *KEEPING,
        "alarm_urls",
        *PROMISE_INPUTS,
    )

    app_name = StringField("AppName")
    title = StringField(_l("Title"))
    address_type = RadioField(_l("Registration"), validate_choice=False, default="0")
    address_list = TextAreaField(_l("Addresses"))
    access_token = PasswordField(_l("Access token"))
    max_running = StringField(_l("Most runs at once"))
    log_archive = SelectField(_l("Log archive"), validate_choice=False)
    log_days = StringField(_l("Days of archived logs"))
    run_days = StringField(_l("Days of runs"))
    drop_token = BooleanField(_l("Remove the token and use the console's"))
    alarm_urls = TextAreaField(_l("Apprise URLs"))
    loaded = HiddenField()

    def offer(self) -> None:
        """Fill the choices."""
        self.log_archive.choices = labels.choices(labels.LOG_ARCHIVES)
        self.address_type.choices = [
            (str(int(AddressType.AUTOMATIC)), str(_l("automatic"))),
            (str(int(AddressType.MANUAL)), str(_l("manual"))),
        ]
