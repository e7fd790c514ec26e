"""Filling: the values of placeholders for one run, in one pass; what was filled in is never read again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.domain.parameters.civil_time import YearOutOfRange, move
from app.domain.parameters.date_patterns import write_moment
from app.domain.parameters.errors import NotFilled, quote
from app.domain.parameters.given_values import Default, GivenReader
from app.domain.parameters.json_values import (
    Digits,
    JsonValue,
    compact_json,
    parse_json,
    quoted_json,
    storable,
    text_of,
)
from app.domain.parameters.marked_text import BYTES_MAX, FILLED_MAX, check_size, display, mark, unmark
from app.domain.parameters.placeholders import (
    Epoch,
    Fact,
    FactValue,
    GivenValue,
    Piece,
    Secret,
    TimeValue,
    Unknown,
    VariableValue,
)
from app.domain.parameters.values import Values
from app.domain.runs.trace_templates import (
    FILLED_TOO_LONG,
    NO_VARIABLE,
    YEAR_OUT_OF_RANGE,
    ZONE_UNKNOWN,
    fill,
)
from app.domain.schedules.schedule import zone
from app.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class FilledText:
    """Filled template: marked text, and the names of its secrets."""

    marked_text: str
    secrets: frozenset[str]

    @property
    def text(self) -> str:
        """Text that is sent; a secret is still ``${secret.NAME}``."""
        return unmark(self.marked_text)


def fill_pieces(pieces: Sequence[Piece], contexts: Sequence[bool] | None, values: Values) -> FilledText:
    """Return the pieces of a template with their values; raise NotFilled.

    ``contexts``: of each piece whether it is inside of a JSON string; None: the template is not JSON.
    """
    reader = GivenReader(values)
    texts: list[str | Secret] = []
    secrets: list[str] = []
    length = 0
    for number, piece in enumerate(pieces):
        if isinstance(piece, str):
            texts.append(piece)
        elif isinstance(piece, Secret):
            texts.append(piece)
            secrets.append(piece.name)
        else:
            value = _value_of(piece, values, reader)
            value_text = _text_of(value, None if contexts is None else contexts[number])
            texts.append(value_text)
            length += len(value_text)
            if length > FILLED_MAX:  # Further values would take time in the claim for nothing.
                raise NotFilled(fill(FILLED_TOO_LONG))
    full_text = mark(texts)
    if len(full_text) > FILLED_MAX // BYTES_MAX:
        check_size("".join(text for text in texts if isinstance(text, str)))
    return FilledText(full_text, frozenset(secrets))


def preview_pieces(
    pieces: Sequence[Piece], contexts: Sequence[bool] | None, values: Values, unknown: Collection[Unknown]
) -> str:
    """Return the text of a run to come, for people; raise NotFilled.

    What is ``unknown`` is only named: ``‹parent.result›``.
    """
    fillable = [_only_named(piece) if _is_unknown(piece, unknown) else piece for piece in pieces]
    return display(fill_pieces(fillable, contexts, values).marked_text)


def _is_unknown(piece: Piece, unknown: Collection[Unknown]) -> bool:
    match piece:
        case GivenValue():
            return piece.origin in unknown
        case FactValue():
            return piece.fact in unknown
        case _:
            return False


def _only_named(piece: Piece) -> Piece:
    match piece:
        case GivenValue(at, default=str(default)):
            return f"‹{at[2 : -len(default) - 3]}›"
        case GivenValue(at) | FactValue(at):
            return f"‹{at[2:-1]}›"
        case _:
            return piece


def _value_of(
    piece: TimeValue | FactValue | VariableValue | GivenValue, values: Values, reader: GivenReader
) -> JsonValue:
    match piece:
        case TimeValue():
            return _time_value(piece, values)
        case FactValue():
            return _fact_value(piece.fact, values)
        case VariableValue():
            if piece.name not in values.variables:
                raise NotFilled(fill(NO_VARIABLE, at=quote(piece.at), name=piece.name))
            return storable(values.variables[piece.name])
        case GivenValue():
            return reader.value(piece)


def _time_value(piece: TimeValue, values: Values) -> str:
    name = piece.zone or values.time_zone
    try:
        moment = move(values.logical_ms, zone(name), piece.steps)
    except YearOutOfRange as exc:
        raise NotFilled(fill(YEAR_OUT_OF_RANGE, at=quote(piece.at))) from exc
    except InvalidInput as exc:
        # The node that saved the parameter may have newer zones.
        raise NotFilled(fill(ZONE_UNKNOWN, at=quote(piece.at), name=quote(name))) from exc
    match piece.form:
        case Epoch.SECONDS:
            return Digits(moment.second)
        case Epoch.MILLISECONDS:
            return Digits(moment.at_ms)
        case tokens:
            return write_moment(moment, tokens)


def _fact_value(fact: Fact, values: Values) -> str:
    match fact:
        case Fact.JOB_ID:
            return Digits(values.job_id)
        case Fact.JOB_NAME:
            return storable(values.job_name)
        case Fact.RUN_ID:
            return Digits(values.run_id)
        case Fact.SHARD_INDEX:
            return Digits(values.shard_index)
        case Fact.SHARD_TOTAL:
            return Digits(values.shard_total)


def _text_of(value: JsonValue, is_inside: bool | None) -> str:
    """Return a value as text; ``is_inside``: of a JSON string, None where it is no JSON."""
    if is_inside is None:
        return text_of(value)
    if is_inside:
        return quoted_json(text_of(value))[1:-1]
    return _json_of_default(value) if isinstance(value, Default) else compact_json(value)


def _json_of_default(default: str) -> str:
    """Return a default where a JSON value stands: itself if it is JSON, else as a string."""
    try:
        return compact_json(parse_json(default))
    except ValueError:
        return quoted_json(default)
