"""Inputs of what a job runs after: its predecessors, the rule, the kind of round, the deadline.

The stored value is a JSON text; without a predecessor the other inputs say nothing.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from wtforms import SelectField, StringField
from wtforms.fields.core import Field

from app.console.ui.forms.base_form import ConsoleForm, whole
from app.console.ui.forms.picked_ids import id_errors, picked_ids
from app.console.ui.labels import choices
from app.console.ui.promise_words import UNITS, length_inputs
from app.console.ui.rounds.words import AT_DEADLINES, KINDS, RULES, SHARDS
from app.console.web.language import lazy_gettext as _l
from app.domain.rounds.kinds import AtDeadline, RoundKind, RoundRule, ShardRule
from app.domain.rounds.runs_after import DEADLINE_MAX_S, DEADLINE_S, JOBS_MAX, RunsAfter, parse_runs_after
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: in the order of the page
AFTER_INPUTS: Final = (
    *("after_jobs", "after_rule", "after_k", "after_round"),
    *("after_deadline", "after_unit", "after_at_deadline", "after_shards", "after_shards_k"),
)
#: member of the value -> its input
_INPUT_OF: Final = {
    "k": "after_k",
    "rule": "after_rule",
    "round": "after_round",
    "shards": "after_shards",
    "shards_k": "after_shards_k",
    "deadline_s": "after_deadline",
    "at_deadline": "after_at_deadline",
}
SHARDS_MAX: Final = 10_000
_UNITS = {"s": _l("seconds"), "m": _l("minutes"), "h": _l("hours"), "d": _l("days")}
_OPTIONS: Mapping[str, Mapping[Any, str]] = {
    "after_rule": RULES,
    "after_round": KINDS,
    "after_shards": SHARDS,
    "after_at_deadline": AT_DEADLINES,
    "after_unit": _UNITS,
}
_DEADLINE = dict(zip(("value", "unit"), length_inputs(DEADLINE_S), strict=True))


class RunsAfterFields(ConsoleForm):
    """Form with the inputs of what a job runs after."""

    after_jobs = StringField(_l("Predecessors"))
    after_rule = SelectField(_l("Runs when"), validate_choice=False, default=RoundRule.ALL_SUCCEEDED.value)
    after_k = StringField(_l("How many of them"), default="1")
    after_round = SelectField(
        _l("What belongs together"), validate_choice=False, default=RoundKind.LOGICAL_TIME.value
    )
    after_deadline = StringField(_l("Waits at most"), default=_DEADLINE["value"])
    after_unit = SelectField(_l("Unit of the wait"), validate_choice=False, default=_DEADLINE["unit"])
    after_at_deadline = SelectField(
        _l("If they have not arrived by then"), validate_choice=False, default=AtDeadline.DROP.value
    )
    after_shards = SelectField(_l("Of a broadcast"), validate_choice=False, default=ShardRule.ALL.value)
    after_shards_k = StringField(_l("How many shards"), default="1")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, titles in _OPTIONS.items():
            select = self[name]
            assert isinstance(select, SelectField)
            select.choices = choices(titles)

    def field_at(self, name: str) -> Field | None:
        """Return the field of a name; an error of the value such as ``runs_after.jobs.0`` has its own."""
        place, _dot, member = name.partition(".")
        if place != "runs_after":
            return super().field_at(name)
        return self[_INPUT_OF.get(member.partition(".")[0], "after_jobs")]


def runs_after_values(text: str | None) -> dict[str, str]:
    """Return the values of the inputs for a stored value."""
    value = parse_runs_after(text)
    if value is None:
        return {}
    length, unit = length_inputs(value.deadline_s) if value.deadline_s else ("0", _DEADLINE["unit"])
    members = {name: str(getattr(value, member)) for member, name in _INPUT_OF.items()}
    jobs = ",".join(map(str, value.jobs))
    return members | {"after_jobs": jobs, "after_deadline": length, "after_unit": unit}


def runs_after_json(form: RunsAfterFields, errors: InputErrors) -> str:
    """Return the value in a form as JSON text, ``null`` without predecessors; errors are collected."""
    wrong = id_errors("runs_after.jobs", form.after_jobs.data)
    for error in wrong:
        with errors:
            raise error
    job_ids = picked_ids(form.after_jobs.data)
    if not job_ids:
        return "null"
    value: dict[str, Any] = {
        "jobs": job_ids,
        **{member: form[name].data or "" for member, name in _INPUT_OF.items()},
        "k": 1,
        "shards_k": 1,
        "deadline_s": DEADLINE_S,
    }
    with errors:
        if value["rule"] == RoundRule.K_OF_N:
            value["k"] = whole(form.after_k, low=1, high=JOBS_MAX)
    with errors:
        if value["shards"] == ShardRule.AT_LEAST:
            value["shards_k"] = whole(form.after_shards_k, low=1, high=SHARDS_MAX)
    with errors:
        value["deadline_s"] = _seconds(form)
    return json.dumps(value, separators=(",", ":"))


def runs_after_in(form: RunsAfterFields) -> RunsAfter | None:
    """Return the value in a form, with defaults in place of what is wrong; None without predecessors."""
    return parse_runs_after(runs_after_json(form, InputErrors()))


def _seconds(form: RunsAfterFields) -> int:
    text = (form.after_deadline.data or "").strip()
    if not text:
        return DEADLINE_S
    size = UNITS.get(form.after_unit.data or "", 1)
    is_number = text.isascii() and text.isdecimal() and len(text) <= 9
    if not is_number or int(text) * size > DEADLINE_MAX_S:
        raise InvalidInput(
            "runs_after.deadline_s",
            N_(
                '"%(value)s" is not a whole number from %(low)s to %(high)s',
                value=text[:40],
                low=0,
                high=DEADLINE_MAX_S // size,
            ),
        )
    return int(text) * size
