"""Form of a backfill."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar
from zoneinfo import ZoneInfo

from wtforms import SelectField, StringField

from app.clock import Millis
from app.console.ui.backfills.words import CHILDREN, LABELS, ON_FAILURES, ORDERS, WHICH
from app.console.ui.forms.base_form import ConsoleForm, whole
from app.console.ui.labels import choices
from app.console.ui.lists.ranges import read_local
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.backfills.kinds import RUNNING_MAX, Children, OnFailure, Order, Which
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.backfills.backfills import BackfillDraft

T = TypeVar("T", bound=StrEnum)
#: of named instants: those that have not succeeded
UNSUCCESSFUL = "unsuccessful"


class BackfillForm(ConsoleForm):
    """What a backfill runs, and how."""

    ORDER = ("from_", "to", "which", "order", "max_running", "children", "on_failure")
    ALIASES: Mapping[str, str] = MappingProxyType({"from": "from_"})

    from_ = StringField(_l("From"), name="from")
    to = StringField(_l("Until"))
    which = SelectField(LABELS["which"], validate_choice=False)
    order = SelectField(LABELS["order"], validate_choice=False)
    max_running = StringField(LABELS["max_running"], default="1")
    children = SelectField(LABELS["children"], validate_choice=False)
    on_failure = SelectField(LABELS["on_failure"], validate_choice=False)

    def offer(self, *, is_named: bool) -> None:
        """Fill the selects; ``is_named``: the instants are named instead of a range."""
        which = [(UNSUCCESSFUL, _("Those that have not succeeded")), (Which.ALL.value, _("All of them"))]
        self.which.choices = which if is_named else choices(WHICH)
        self.order.choices = choices(ORDERS)
        self.children.choices = choices(CHILDREN)
        self.on_failure.choices = choices(ON_FAILURES)

    def forget_errors(self) -> None:
        """Show no error at the fields."""
        self.form_errors.clear()
        for field in self.wrong_fields:
            field.errors, field.render_kw = [], {}

    def draft(self, zone: ZoneInfo, times: Sequence[Millis]) -> BackfillDraft:
        """Return what was entered for a job; raises InvalidInput."""
        errors = InputErrors()
        ends, max_running = dict[str, Millis](), 1
        if not times:
            for name, text in (("from", self.from_.data), ("to", self.to.data)):
                with errors:
                    ends[name] = _instant(name, text, zone)
        with errors:
            max_running = whole(self.max_running, low=1, high=RUNNING_MAX)
        errors.raise_all()
        return BackfillDraft(
            from_ms=ends.get("from", 0),
            to_ms=ends.get("to", 0),
            times=times,
            which=Which.ALL if times else _member(Which, self.which.data, Which.ALL),
            order=_member(Order, self.order.data, Order.OLDEST_FIRST),
            max_running=max_running,
            children=_member(Children, self.children.data, Children.NONE),
            on_failure=_member(OnFailure, self.on_failure.data, OnFailure.STOP),
        )


def _member(kind: type[T], value: str | None, default: T) -> T:
    return kind(value) if value in {member.value for member in kind} else default


def _instant(field: str, value: str | None, zone: ZoneInfo) -> Millis:
    text = (value or "").strip()
    if not text:
        raise InvalidInput(field, N_("Enter a time"))
    at_ms = read_local(text, zone)
    if at_ms is None:
        raise InvalidInput(
            field, N_('"%(value)s" is not a time such as 2030-01-31 08:00:00', value=text[:40])
        )
    return at_ms
