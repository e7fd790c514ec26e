"""Forms of the user's own account: password, settings and API tokens."""

from wtforms import PasswordField, RadioField, SelectField, SelectMultipleField, StringField
from wtforms.widgets import CheckboxInput, ListWidget

from app.clock import DAY_MS, Millis
from app.console.ui.filters import absolute
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.picked_ids import id_errors, picked_ids
from app.console.ui.labels import RIGHTS, choices
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.access.api_tokens import ADMIN, Grant
from app.domain.access.permissions import parse_rights
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.accounts.api_tokens import TokenDraft

#: lives offered for a token, in days; the second is suggested
TOKEN_DAYS = (30, 90, 365)
NEVER = "never"


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


class ApiTokenForm(ConsoleForm):
    """Create an API token."""

    ORDER = ("name", "rights", "scope", "groups", "expires", "password")

    name = StringField(_l("Name"))
    rights = SelectMultipleField(
        _l("Rights"), widget=ListWidget(), option_widget=CheckboxInput(), validate_choice=False
    )
    scope = RadioField(_l("Executor groups"), validate_choice=False, default="all")
    groups = StringField(_l("Chosen executors"))
    expires = SelectField(_l("Expires"), validate_choice=False, default="90")
    password = PasswordField(_l("Your password"))

    def offer(self, *, is_admin: bool, now_ms: Millis) -> None:
        """Fill the choices; the right of administrators is offered to them only."""
        administration = [(ADMIN, _("Administration: everything on all executors, users and settings"))]
        self.rights.choices = choices(RIGHTS) + (administration if is_admin else [])
        all_groups = _("All executors") if is_admin else _("All executors I have rights on")
        self.scope.choices = [("all", all_groups), ("chosen", _("Chosen executors"))]
        self.expires.choices = [
            *(
                (
                    str(days),
                    _("in %(n)s days, on %(date)s", n=days, date=absolute(now_ms + days * DAY_MS)[:10]),
                )
                for days in TOKEN_DAYS
            ),
            (NEVER, _("never")),
        ]

    def draft(self, *, service: bool, now_ms: Millis) -> TokenDraft:
        """Return the token as entered. Raises InvalidInput."""
        words = self.rights.data or []
        is_chosen = self.scope.data == "chosen"
        for error in id_errors("groups", self.groups.data if is_chosen else ""):
            raise error
        grant = Grant(
            rights=parse_rights(",".join(words)),
            admin=ADMIN in words,
            group_ids=frozenset(picked_ids(self.groups.data)) if is_chosen else None,
        )
        life = self.expires.data or ""
        if life not in {NEVER, *map(str, TOKEN_DAYS)}:
            raise InvalidInput("expires", N_("Choose one of the listed values"))
        expires_ms = 0 if life == NEVER else now_ms + int(life) * DAY_MS
        return TokenDraft(self.name.data or "", grant, expires_ms, service)
