"""The forms of the pages: fields, labels and what a browser sends. The rules are the services'; their refusals are shown at the field."""

import re
from collections.abc import Mapping

from wtforms import (
    BooleanField,
    Form,
    HiddenField,
    PasswordField,
    RadioField,
    SelectField,
    StringField,
    TextAreaField,
)
from wtforms.fields.core import Field

from app.console import words
from app.console.current import say
from app.console.language import lazy_gettext as _l
from app.domain.enums import AddressType, Role
from app.domain.texts import N_
from app.errors import InvalidInput

#: fields of the services (the original's names) that are called otherwise here
SERVICE_FIELDS = {
    "child_job_id": "child_jobid",
    "appname": "app_name",
    "user_name": "username",
    "retry_count": "executor_fail_retry_count",
}


class ConsoleForm(Form):
    """A form that can show what a service refused."""

    #: further names of services for fields of this form
    ALIASES: Mapping[str, str] = {}

    def refuse(self, error: InvalidInput) -> None:
        """Show the refusal at its field, or above the form where it has none."""
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.field).lower()
        name = self.ALIASES.get(snake, SERVICE_FIELDS.get(snake, snake))
        field: Field | None = self._fields.get(name)
        if field is None or field.type == "HiddenField":
            self.form_errors.append(say(error.message))
        else:
            field.errors = [*field.errors, say(error.message)]


def whole(field: Field, *, least: int = 0) -> int:
    """Return the number in a text field, ``least`` where it is empty; raises InvalidInput."""
    text = (field.data or "").strip()
    if not text:
        return least
    if re.fullmatch(r"[0-9]{1,9}", text) is None or int(text) < least:
        raise InvalidInput(field.name, N_("Enter a whole number of at least %(least)s", least=least))
    return int(text)


class JobForm(ConsoleForm):
    """Add, edit or copy a job."""

    job_group = SelectField(_l("Executor"), coerce=int, validate_choice=False)
    job_desc = StringField(_l("Job description"))
    author = StringField(_l("Owner"))
    alarm_email = StringField(_l("Alarm mail"))
    tags = StringField(_l("Tags"))
    schedule_type = SelectField(_l("Schedule type"), validate_choice=False)
    cron = StringField("Cron")
    rate_s = StringField(_l("Period in seconds"))
    delay_s = StringField(_l("Delay in seconds"))
    at = StringField(_l("Time"))
    time_zone = SelectField(_l("Time zone"), validate_choice=False)
    not_before = StringField(_l("Not before"))
    not_after = StringField(_l("Not after"))
    glue_type = SelectField(_l("Run mode"), validate_choice=False)
    executor_handler = StringField("JobHandler")
    executor_param = TextAreaField(_l("Job parameter"))
    executor_route_strategy = SelectField(_l("Route strategy"), validate_choice=False)
    child_jobid = StringField(_l("Child job ids"))
    misfire_strategy = SelectField(_l("Misfire strategy"), validate_choice=False)
    executor_block_strategy = SelectField(_l("Block strategy"), validate_choice=False)
    executor_timeout = StringField(_l("Time-out"))
    executor_fail_retry_count = StringField(_l("Retries after a failure"))
    retry_interval_s = StringField(_l("Wait before a retry"))
    retry_backoff_percent = StringField(_l("Growth of the wait, in percent"))
    delivery = SelectField(_l("Send again after a loss of contact"), validate_choice=False)

    def offer(self, groups: list[tuple[int, str]], zones: list[tuple[str, str]]) -> None:
        """Fill the selects."""
        self.job_group.choices = groups
        self.time_zone.choices = zones
        self.schedule_type.choices = words.choices(words.SCHEDULE_TYPES)
        self.glue_type.choices = words.choices(words.GLUE_TYPES)
        self.executor_route_strategy.choices = words.choices(words.ROUTE_STRATEGIES)
        self.misfire_strategy.choices = words.choices(words.MISFIRE_STRATEGIES)
        self.executor_block_strategy.choices = words.choices(words.BLOCK_STRATEGIES)
        self.delivery.choices = words.choices(words.DELIVERIES)

    def conf_field(self) -> Field | None:
        """Return the field that holds the schedule of the chosen type."""
        return {"CRON": self.cron, "FIX_RATE": self.rate_s, "FIX_DELAY": self.delay_s, "AT": self.at}.get(
            self.schedule_type.data or ""
        )

    def refuse(self, error: InvalidInput) -> None:
        """Show a bad schedule at the input of its type."""
        field = self.conf_field()
        if field is not None and error.field in {"scheduleConf", "schedule_conf"}:
            error = InvalidInput(field.name, error.message)
        super().refuse(error)


class RunForm(ConsoleForm):
    """Run a job once."""

    executor_param = TextAreaField(_l("Job parameter"))
    address_list = StringField(_l("Executor addresses"))


class MuteForm(ConsoleForm):
    """Mute the alarms of a job or of an executor group."""

    span = RadioField(_l("For how long"), validate_choice=False)
    reason = StringField(_l("Reason"))


class CleanForm(ConsoleForm):
    """Clean the log."""

    ALIASES = {"type": "kind"}

    job_group = HiddenField()
    job_id = HiddenField()
    kind = SelectField(_l("What is deleted"), validate_choice=False)


class GroupForm(ConsoleForm):
    """Add or edit an executor group."""

    app_name = StringField("AppName")
    title = StringField(_l("Title"))
    address_type = RadioField(_l("Registration"), validate_choice=False, default="0")
    address_list = TextAreaField(_l("Addresses"))
    access_token = StringField(_l("Access token of its own"))
    drop_token = BooleanField(_l("Drop the token: use the console's"))
    alarm_urls = TextAreaField(_l("Alarm channels"))

    def offer(self) -> None:
        """Fill the choices."""
        self.address_type.choices = [
            (str(int(AddressType.AUTOMATIC)), str(_l("automatic"))),
            (str(int(AddressType.MANUAL)), str(_l("by hand"))),
        ]


class UserForm(ConsoleForm):
    """Add or edit a user; the rights are check boxes ``right=<group>:<right>``."""

    username = StringField(_l("User name"))
    password = PasswordField(_l("Password"))
    role = RadioField(_l("Role"), validate_choice=False, default="0")
    disabled = BooleanField(_l("Disabled"))
    #: what is ticked
    rights: frozenset[str] = frozenset()

    def offer(self) -> None:
        """Fill the choices."""
        self.role.choices = [
            (str(int(Role.NORMAL)), str(_l("Normal user"))),
            (str(int(Role.ADMIN)), str(_l("Administrator"))),
        ]


class PasswordForm(ConsoleForm):
    """Change one's own password."""

    ALIASES = {"password": "new_password"}

    old_password = PasswordField(_l("Old password"))
    new_password = PasswordField(_l("New password"))
    repeated = PasswordField(_l("New password again"))


class SettingsForm(ConsoleForm):
    """One's own language and zone."""

    language = SelectField(_l("Language"), validate_choice=False)
    time_zone = SelectField(_l("Time zone"), validate_choice=False)


class ViewForm(ConsoleForm):
    """The name of a view."""

    name = StringField(_l("Name"))


class RestoreForm(ConsoleForm):
    """Restore a version of a GLUE source."""

    glue_remark = StringField(_l("Remark"))


class GlueForm(ConsoleForm):
    """Save a GLUE source."""

    glue_source = TextAreaField(_l("Source"))
    glue_remark = StringField(_l("Remark"))
