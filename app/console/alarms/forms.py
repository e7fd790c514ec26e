"""Forms of the pages of mutes and alarm channels."""

from wtforms import BooleanField, HiddenField, RadioField, StringField, TextAreaField

from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.picked_ids import id_errors, picked_ids
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.alarms.channel_kinds import KINDS, ChannelField, ChannelKind
from app.domain.alarms.channel_settings import Settings
from app.services.alarms.channel_setup import ChannelDraft


class MuteForm(ConsoleForm):
    """Length of a mute, and the reason."""

    span = RadioField(_l("Mute for"), validate_choice=False)
    reason = StringField(_l("Reason"))


class ChannelForm(ConsoleForm):
    """Add or edit an alarm channel; of the fields of settings, those of its kind are shown."""

    kind = HiddenField()
    name = StringField(_l("Name"))
    addresses = TextAreaField()
    url = StringField()
    server = StringField()
    topic = StringField()
    secret = StringField()
    token = StringField()
    drop = BooleanField(_l("Remove the saved value"))
    scope = RadioField(_l("For"), validate_choice=False)
    groups = StringField(_l("Chosen executors"))
    jobs = StringField(_l("Chosen jobs"))
    daily = BooleanField(_l("Daily message at 08:00: did everything run?"))
    loaded = HiddenField()

    def describe(self, kind: ChannelKind, settings: Settings) -> None:
        """Set labels and values of the fields of a kind; stored secrets are left out."""
        self.channel_kind = kind
        self.specs = KINDS[kind].fields
        self.secret_names = {spec.name for spec in self.specs if spec.is_secret and settings.get(spec.name)}
        self.scope.choices = [("all", _("All jobs")), ("chosen", _("Chosen executors and jobs"))]
        for spec in self.specs:
            field = self._fields[spec.name]
            field.label.text = _(spec.label)
            if not field.raw_data and not spec.is_secret:
                field.data = settings.get(spec.name, spec.default)

    def hint(self, field: ChannelField) -> str:
        """Return the hint of a field."""
        note = (
            _("Saved and not shown again. Leave empty to keep it.") if field.name in self.secret_names else ""
        )
        return f"{_(field.hint)} {note}".strip()

    def draft(self) -> ChannelDraft:
        """Return the channel as entered."""
        is_chosen = self.scope.data == "chosen"
        scopes = {name: self._fields[name].data if is_chosen else "" for name in ("groups", "jobs")}
        optional = {spec.name for spec in self.specs if not spec.is_required}
        return ChannelDraft(
            name=self.name.data or "",
            kind=self.channel_kind,
            settings={spec.name: self._fields[spec.name].data or "" for spec in self.specs},
            for_all=not is_chosen,
            group_ids=picked_ids(scopes["groups"]),
            job_ids=picked_ids(scopes["jobs"]),
            daily=bool(self.daily.data),
            unreadable=tuple(error for name, text in scopes.items() for error in id_errors(name, text)),
            dropped=optional if self.drop.data else frozenset(),
        )
