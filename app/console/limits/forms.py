"""Form of a named limit."""

from types import MappingProxyType

from wtforms import HiddenField, SelectField, StringField

from app.console.ui.forms.base_form import ConsoleForm, whole
from app.console.web.language import lazy_gettext as _l
from app.domain.limits.rules import WEIGHT_MAX
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.store.base.paging import to_id

#: value of the choice that all executors may use a limit
ALL = "all"


class LimitForm(ConsoleForm):
    """Add a named limit or change its slots."""

    ORDER = ("name", "slots", "group")
    ALIASES = MappingProxyType({"group_id": "group"})

    loaded = HiddenField()
    name = StringField(_l("Name"))
    slots = StringField(_l("Slots"))
    group = SelectField(_l("Executor"), validate_choice=False)

    def read_slots(self, errors: InputErrors) -> int:
        """Return the number of slots; its error is collected."""
        with errors:
            return whole(self.slots, low=1, high=WEIGHT_MAX)
        return 1

    def read_group(self, errors: InputErrors) -> int | None:
        """Return the executor that may use it, None for all; its error is collected."""
        if self.group.data == ALL:
            return None
        group_id = to_id(self.group.data or "")
        with errors:
            if not group_id:
                raise InvalidInput("group", N_("Choose an executor"))
        return group_id or None
