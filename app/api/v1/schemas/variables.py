"""Schemas: stored variables and secrets. The value of a secret is written, never returned."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from app.api.v1.schemas.base import ID_MAX, Id, Instant, ListQuery, Partial, Schema
from app.domain.jobs.variables import ALLOWED_MAX, NAME_MAX, VALUE_MAX
from app.domain.text.limits import SECRET_MIN

Value = Annotated[str, Field(max_length=VALUE_MAX)]
SecretValue = Annotated[str, Field(min_length=SECRET_MIN, max_length=VALUE_MAX)]
GroupIds = Annotated[list[Id], Field(max_length=ALLOWED_MAX)]
_OF_A_VARIABLE = "Value of a variable; it may be empty."
_OF_A_SECRET = "Value of a secret. It is stored sealed and never returned; needs the right `glue`."
_ALLOWED = "Groups that may use a secret of the installation; by default none."


class VariableQuery(ListQuery):
    """Filters of variables and secrets."""

    name: str = Field("", max_length=NAME_MAX, description="The whole name.")
    group_id: int | None = Field(None, ge=0, le=ID_MAX, description="Of this group; 0: of the installation.")
    kind: Literal["variable", "secret"] | None = None


class VariableOut(Schema):
    """Variable or secret that the parameters of jobs name."""

    id: int
    name: str
    kind: Literal["variable", "secret"]
    group_id: int | None = Field(description="null: of the installation.")
    value: str | None = Field(description="Of a variable; null: a secret, whose value is not returned.")
    allowed: list[int] = Field(description="Groups that may use a secret of the installation.")
    version: int = Field(description="1, then one more with each change.")
    updated_at: Instant
    username: str = Field(description="Who changed it last.")


class VariableIn(Partial):
    """A new variable, with `value`, or a new secret, with `secret`."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: str = Field(
        max_length=NAME_MAX,
        pattern="^[A-Za-z][A-Za-z0-9_]*$",
        description="A letter; letters, digits and `_` follow.",
        examples=["REGION"],
    )
    group_id: Id | None = Field(None, description="null: of the installation; for administrators.")
    value: Value | None = Field(None, description=_OF_A_VARIABLE, examples=["eu-1"])
    secret: SecretValue | None = Field(None, description=_OF_A_SECRET)
    allowed: GroupIds = Field([], description=_ALLOWED)


class VariablePatch(Partial):
    """Changes of a variable or secret. What is not given is kept; its name, group and kind stay."""

    model_config = ConfigDict(hide_input_in_errors=True)

    value: Value = Field("", description=_OF_A_VARIABLE, examples=["eu-2"])
    secret: SecretValue = Field("", description=_OF_A_SECRET)
    allowed: GroupIds = Field([], description=_ALLOWED)
