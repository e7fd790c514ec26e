"""Inputs of promises and of their escalation, in the forms of a job and of an executor group.

The stored values are JSON texts; each promise has a row of inputs, and rows without a kind are ignored.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from wtforms import SelectField, StringField
from wtforms.fields.core import Field

from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.labels import SCHEDULE_TYPES, choices
from app.console.ui.promise_words import KINDS, UNITS, length_inputs
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.enums import PromiseKind
from app.domain.promises.promise import (
    ALARM,
    PROMISES_MAX,
    SECONDS_MAX,
    SWITCH_OFF,
    Promise,
    member_of,
    read_escalation,
    read_promises,
)
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, Text
from app.errors import InvalidInput

#: empty rows that are offered at once
SPARE = 3
PARTS: Final = ("kind", "value", "unit", "then")
ESCALATION: Final = ("escalation_channel", "escalation_minutes")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?:\s*\+\s*([1-9])d?)?")
#: options of the selects; their titles are translated when they are shown
_KINDS = {"": _l("none"), **{kind.value: title for kind, title in KINDS.items()}}
_UNITS = {"s": _l("seconds"), "m": _l("minutes"), "h": _l("hours"), "d": _l("days")}
_THENS = {ALARM: _l("then an alarm"), SWITCH_OFF: _l("then switch off, with an alarm")}


class PromiseFields(ConsoleForm):
    """Form with inputs of promises; those of its rows are added below."""

    escalation_channel = SelectField(_l("Escalation"), validate_choice=False)
    escalation_minutes = StringField(_l("Minutes until the escalation"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        options = {"kind": choices(_KINDS), "unit": choices(_UNITS), "then": choices(_THENS)}
        for row in self.promise_rows:
            for part, titles in options.items():
                row.select(part).choices = titles
            row.field("kind").label.text = _("Promise %(number)s", number=row.number + 1)
            row.field("value").label.text = _("Value of promise %(number)s", number=row.number + 1)
        self.escalation_channel.choices = [("", "")]

    @property
    def promise_rows(self) -> list["Row"]:
        """The rows, in the order of the page."""
        return [Row(self, number) for number in range(PROMISES_MAX)]

    @property
    def shown_promises(self) -> int:
        """Number of rows that are shown at first: those with a promise, and some without."""
        used = max((row.number + 1 for row in self.promise_rows if not row.is_empty), default=0)
        return min(PROMISES_MAX, used + SPARE)

    def offer_channels(self, names: Iterable[str], *, none: str) -> None:
        """Fill the select of the escalation; a stored channel that the user may not see stays."""
        channel = self.escalation_channel.data or ""
        channels = [*names]
        extra = [channel] if channel and channel not in channels else []
        self.escalation_channel.choices = [("", none), *((name, name) for name in [*channels, *extra])]

    def refuse(self, error: InvalidInput) -> None:
        """Show each error at its field; kinds and schedule types are named as the selects name them."""
        for item in error.errors:
            item.message = _in_words(item.message)
        super().refuse(error)

    def promise_field_at(self, name: str) -> Field | None:
        """Return the input at which an error such as ``promises.1.s`` is shown; None for other errors."""
        place, _dot, member = name.partition(".")
        if place == "escalation":
            is_channel = member in ("", "channel")
            return self._fields[ESCALATION[0 if is_channel else 1]]
        if place != "promises":
            return None
        index, _dot, member = member.partition(".")
        rows = [row for row in self.promise_rows if not row.is_empty] or self.promise_rows
        at = int(index) if index.isdecimal() else 0
        row = rows[min(at, len(rows) - 1)]
        return row.field(member if member in ("kind", "then") else "kind" if not member else "value")

    def field_at(self, name: str) -> Field | None:
        """Return the field of a name; promises have rows of their own."""
        return self.promise_field_at(name) or super().field_at(name)


for _number in range(PROMISES_MAX):
    setattr(
        PromiseFields,
        f"promise{_number}_kind",
        SelectField(_l("Promise"), validate_choice=False),
    )
    setattr(PromiseFields, f"promise{_number}_value", StringField(_l("Value")))
    setattr(
        PromiseFields,
        f"promise{_number}_unit",
        SelectField(_l("Unit"), validate_choice=False, default="s"),
    )
    setattr(
        PromiseFields,
        f"promise{_number}_then",
        SelectField(_l("If it is broken"), validate_choice=False, default=ALARM),
    )
#: inputs of promises and escalation, in the order of the page
PROMISE_INPUTS: Final = (
    *(f"promise{number}_{part}" for number in range(PROMISES_MAX) for part in PARTS),
    *ESCALATION,
)


class Row:
    """Inputs of one promise."""

    def __init__(self, form: PromiseFields, number: int) -> None:
        self._form, self.number = form, number

    def field(self, part: str) -> Field:
        """Return an input: one of PARTS."""
        return self._form[f"promise{self.number}_{part}"]

    def select(self, part: str) -> SelectField:
        """Return an input that is a select."""
        field = self.field(part)
        assert isinstance(field, SelectField)
        return field

    @property
    def is_empty(self) -> bool:
        """Whether no kind is chosen."""
        return not self.field("kind").data

    def read(self, index: int) -> dict[str, Any]:
        """Return the promise as JSON value; raises InvalidInput at ``promises.<index>``."""
        kind, text = self.field("kind").data, (self.field("value").data or "").strip()
        if kind not in list(PromiseKind):
            raise InvalidInput(f"promises.{index}.kind", N_("Choose what is promised"))
        member = member_of(PromiseKind(kind))
        place = f"promises.{index}.{member}"
        match member:
            case "at":
                return {"kind": kind, member: _clock(place, text)}
            case "times":
                return {"kind": kind, member: float(_number_in(place, text, "1.1", "1000"))}
            case "n":
                count = _number_in(place, text, "0", "1000", is_whole=True)
                return {"kind": kind, member: int(count), "then": self.field("then").data or ALARM}
        return {"kind": kind, member: _seconds(place, text, self.field("unit").data or "s")}


def _in_words(message: str) -> str:
    """Return a message with the titles of the kind of promise and of the schedule type that it names."""
    kind = message.params.get("kind") if isinstance(message, Text) else None
    if not isinstance(message, Text) or kind not in list(PromiseKind):
        return message
    schedules = {schedule.value: title for schedule, title in SCHEDULE_TYPES.items()}
    titles = {
        "kind": f"“{KINDS[PromiseKind(str(kind))]}”",
        "schedule": schedules.get(str(message.params.get("schedule")), ""),
    }
    return Text(message.msgid, {**message.params, **titles})


def promise_values(promises: str | None, escalation: str | None) -> dict[str, str]:
    """Return the values of the inputs for stored promises and a stored escalation."""
    values = dict[str, str]()
    for number, promise in enumerate(read_promises(promises)[:PROMISES_MAX]):
        texts = zip(PARTS, _texts_of(promise), strict=True)
        values |= {f"promise{number}_{part}": text for part, text in texts}
    value = read_escalation(escalation)
    if value is not None:
        values |= dict(zip(ESCALATION, (value.channel, str(value.after_minutes)), strict=True))
    return values


def _texts_of(promise: Promise) -> tuple[str, str, str, str]:
    match promise.kind:
        case PromiseKind.FINISHES_BY:
            value, unit = promise.at, "s"
        case PromiseKind.TAKES_USUAL_TIMES:
            value, unit = f"{promise.times:g}", "s"
        case PromiseKind.FAILS_AT_MOST:
            value, unit = str(promise.n), "s"
        case _:
            value, unit = length_inputs(promise.s)
    return promise.kind.value, value, unit, promise.then


def promises_json(form: PromiseFields, errors: InputErrors) -> str:
    """Return the promises in a form as JSON text; a wrong one keeps its place, and its error is collected."""
    promises: list[Mapping[str, Any]] = []
    for row in form.promise_rows:
        if row.is_empty:
            continue
        promise: Mapping[str, Any] = {"kind": PromiseKind.TAKES_AT_LEAST, "s": 1}
        with errors:
            promise = row.read(len(promises))
        promises.append(promise)
    return json.dumps(promises, separators=(",", ":"))


def promises_in(form: PromiseFields) -> Sequence[Promise]:
    """Return the promises in a form, without wrong ones."""
    errors = InputErrors()
    promises = list[Promise]()
    for row in form.promise_rows:
        with errors:
            if not row.is_empty:
                promises.extend(read_promises(json.dumps([row.read(row.number)])))
    return promises


def escalation_json(form: PromiseFields, errors: InputErrors) -> str:
    """Return the escalation in a form as JSON text, ``null`` without a channel; its error is collected."""
    channel, text = form.escalation_channel.data or "", (form.escalation_minutes.data or "").strip()
    if not channel:
        return "null"
    minutes = 1
    with errors:
        minutes = int(_number_in("escalation.after_minutes", text, "1", "10080", is_whole=True))
    return json.dumps({"channel": channel, "after_minutes": minutes}, ensure_ascii=False)


def _clock(place: str, text: str) -> str:
    match = _CLOCK.fullmatch(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise InvalidInput(
            place,
            N_('"%(value)s" is not a time such as 06:00, or 06:00+1d for the next day', value=text[:40]),
        )
    return f"{int(match[1]):02d}:{match[2]}" + (f"+{match[3]}d" if match[3] else "")


def _seconds(place: str, text: str, unit: str) -> int:
    size = UNITS.get(unit, 1)
    seconds = _decimal(text) * size
    if not 1 <= seconds <= SECONDS_MAX or seconds != int(seconds):
        raise InvalidInput(place, N_('"%(value)s" is not a length from a second to a year', value=text[:40]))
    return int(seconds)


def _number_in(place: str, text: str, low: str, high: str, *, is_whole: bool = False) -> Decimal:
    number = _decimal(text)
    if not Decimal(low) <= number <= Decimal(high) or (is_whole and number != int(number)):
        message = (
            N_(
                '"%(value)s" is not a whole number from %(low)s to %(high)s',
                value=text[:40],
                low=low,
                high=high,
            )
            if is_whole
            else N_(
                '"%(value)s" is not a number from %(low)s to %(high)s', value=text[:40], low=low, high=high
            )
        )
        raise InvalidInput(place, message)
    return number


def _decimal(text: str) -> Decimal:
    """Return the number in a text; -1 if there is none."""
    if not re.fullmatch(r"[0-9]{1,9}([.,][0-9]{1,6})?", text):
        return Decimal(-1)
    try:
        return Decimal(text.replace(",", "."))
    except InvalidOperation:
        return Decimal(-1)
