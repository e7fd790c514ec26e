"""Inputs of the named limits of a job: a row for each, with the slots that a run takes.

The stored value is a JSON text; rows without a limit are ignored.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from wtforms import SelectField, StringField
from wtforms.fields.core import Field

from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.limits.words import shares_in, slots_text
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.limits.rules import USES_MAX, WEIGHT_MAX
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: empty rows that are offered at once
SPARE = 1
PARTS: Final = ("name", "weight")
#: inputs of the rows, in the order of the page
LIMIT_INPUTS: Final = tuple(f"limit{number}_{part}" for number in range(USES_MAX) for part in PARTS)


class LimitFields(ConsoleForm):
    """Form with rows of named limits; their inputs are added below."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for row in self.limit_rows:
            row.field("name").label.text = _("Named limit %(number)s", number=row.number + 1)
            row.field("weight").label.text = _("Slots of named limit %(number)s", number=row.number + 1)
        self.offer_limits(())

    @property
    def limit_rows(self) -> list["LimitRow"]:
        """The rows, in the order of the page."""
        return [LimitRow(self, number) for number in range(USES_MAX)]

    @property
    def shown_limits(self) -> int:
        """Number of rows that are shown at first: those with a limit, and an empty one."""
        used = max((row.number + 1 for row in self.limit_rows if row.name), default=0)
        return min(USES_MAX, used + SPARE)

    def offer_limits(self, limits: Iterable[tuple[str, int]]) -> None:
        """Fill the selects with names and slots; a stored limit that the user may not see stays."""
        titles = {
            name: _("%(name)s (%(slots)s)", name=name, slots=slots_text(slots)) for name, slots in limits
        }
        for row in self.limit_rows:
            own = {row.name: row.name} if row.name and row.name not in titles else {}
            row.select.choices = [("", _("none")), *titles.items(), *own.items()]

    def limit_field_at(self, name: str) -> Field | None:
        """Return the input at which an error such as ``limits.1.weight`` is shown; None for other errors."""
        place, _dot, member = name.partition(".")
        if place != "limits":
            return None
        index, _dot, member = member.partition(".")
        rows = [row for row in self.limit_rows if row.name] or self.limit_rows
        row = rows[min(int(index) if index.isdecimal() else 0, len(rows) - 1)]
        return row.field("weight" if member == "weight" else "name")

    def field_at(self, name: str) -> Field | None:
        """Return the field of a name; limits have rows of their own."""
        return self.limit_field_at(name) or super().field_at(name)


for _number in range(USES_MAX):
    setattr(LimitFields, f"limit{_number}_name", SelectField(_l("Named limit"), validate_choice=False))
    setattr(LimitFields, f"limit{_number}_weight", StringField(_l("Slots"), default="1"))


class LimitRow:
    """Inputs of one named limit."""

    def __init__(self, form: LimitFields, number: int) -> None:
        self._form, self.number = form, number

    def field(self, part: str) -> Field:
        """Return an input: one of PARTS."""
        return self._form[f"limit{self.number}_{part}"]

    @property
    def select(self) -> SelectField:
        """The input of the limit."""
        field = self.field("name")
        assert isinstance(field, SelectField)
        return field

    @property
    def name(self) -> str:
        """Name of the chosen limit; empty: the row is not used."""
        return self.field("name").data or ""

    def weight(self, index: int) -> int:
        """Return the slots that a run takes; raises InvalidInput at ``limits.<index>.weight``."""
        text = (self.field("weight").data or "").strip() or "1"
        if not (text.isascii() and text.isdecimal()) or len(text) > 9 or not 1 <= int(text) <= WEIGHT_MAX:
            raise InvalidInput(
                f"limits.{index}.weight",
                N_(
                    '"%(value)s" is not a whole number from %(low)s to %(high)s',
                    value=text[:40],
                    low=1,
                    high=WEIGHT_MAX,
                ),
            )
        return int(text)


def limit_values(text: str | None) -> dict[str, str]:
    """Return the values of the inputs for stored limits."""
    values = dict[str, str]()
    for number, share in enumerate(shares_in(text)[:USES_MAX]):
        values |= {f"limit{number}_name": share.limit, f"limit{number}_weight": str(share.weight)}
    return values


def limits_json(form: LimitFields, errors: InputErrors) -> str:
    """Return the limits in a form as JSON text; a wrong one keeps its place, and its error is collected."""
    shares = list[dict[str, Any]]()
    for row in form.limit_rows:
        if not row.name:
            continue
        weight = 1
        with errors:
            weight = row.weight(len(shares))
        shares.append({"limit": row.name, "weight": weight})
    return json.dumps(shares, ensure_ascii=False, separators=(",", ":"))
