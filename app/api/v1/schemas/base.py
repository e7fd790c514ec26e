"""Schemas of the API: common types. Bodies refuse unknown members; JSON types are not converted."""

import re
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)

from app.domain.schedules.instants import read_instant, write_instant

T = TypeVar("T")
#: largest id of all objects except runs
ID_MAX = 2**31 - 1
#: largest and default number of items of a list
LIMIT_MAX, LIMIT = 200, 50
#: longest cursor accepted
CURSOR_MAX = 500

#: offset whose ``+`` became a blank, because a query parameter did not encode it
_BARE_OFFSET = re.compile(r" (?=\d\d:\d\d\Z)")
_INSTANT = {"type": "string", "format": "date-time", "examples": ["2030-01-31T08:00:00.000Z"]}


def _read_instant(value: Any, info: ValidationInfo) -> Any:
    if info.mode == "python":
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str):
            value = _BARE_OFFSET.sub("+", value)
    return read_instant(value)


#: an instant: epoch milliseconds here, a text in JSON
Instant = Annotated[
    int,
    BeforeValidator(_read_instant),
    PlainSerializer(write_instant, return_type=str),
    WithJsonSchema(_INSTANT),
]
#: id of an object
Id = Annotated[int, Field(ge=1, le=ID_MAX)]


class Schema(BaseModel):
    """Body or answer: unknown members are refused, types are exact."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, serialize_by_alias=True)
    #: members that change by themselves, such as the last run, and are no part of the ETag
    VOLATILE: ClassVar[frozenset[str]] = frozenset()


def _without_defaults(schema: dict[str, Any]) -> None:
    for member in schema["properties"].values():
        member.pop("default", None)


class Partial(Schema):
    """Body in which leaving a member out means something of its own.

    Its schema names no defaults: generated clients would send them.
    """

    model_config = ConfigDict(json_schema_extra=_without_defaults)


class Query(BaseModel):
    """Query parameters: texts are converted; unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ListQuery(Query):
    """Query parameters of every list."""

    limit: int = Field(LIMIT, ge=1, le=LIMIT_MAX, description="Items of one answer.")
    cursor: str = Field(
        "", max_length=CURSOR_MAX, description="`next_cursor` of the answer before; empty: the beginning."
    )


class Listed(Schema, Generic[T]):
    """Part of a list."""

    items: list[T]
    next_cursor: str | None = Field(None, description="Continues the list; null: this is its end.")


class FieldError(Schema):
    """One invalid value."""

    field: str = Field(description="Member of the body, or query parameter; `a.0.b` inside of others.")
    reason: str


class Problem(Schema):
    """Error answer, `application/problem+json` (RFC 9457)."""

    type: str = Field("about:blank")
    title: str = Field(examples=["Unprocessable Content"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["schedule: must have 6 or 7 fields"])
    errors: list[FieldError] = Field(default_factory=list, description="Every invalid value.")
    request_id: str = Field(description="Also in `X-Request-Id` and in the log of the console.")
