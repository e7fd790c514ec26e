"""Schemas: users and their rights, service tokens, and the token of the request."""

from typing import Literal

from pydantic import Field

from app.api.v1.schemas.base import Id, Instant, ListQuery, Partial, Schema
from app.domain.access.passwords import PASSWORD_MAX
from app.services.accounts.users import NAME_MAX, NAME_MIN

RoleName = Literal["normal", "admin"]
RightName = Literal["view", "operate", "edit", "glue"]
PASSWORD = "Never returned; 8 to 128 characters, and not a common password."


class GroupRights(Schema):
    """Rights on one executor group."""

    group_id: int
    app_name: str
    rights: list[str] = Field(examples=[["view", "operate"]])


class OwnToken(Schema):
    """API token of the request."""

    name: str = Field(description="Name of the API token; empty for a command on the server.")
    username: str = Field(description="User it acts as; of a service token its name.")
    is_service: bool = Field(description="Whether it belongs to no user.")
    is_admin: bool = Field(description="Whether it may do everything.")
    expires_at: Instant | None = Field(description="null: never.")
    groups: list[GroupRights] = Field(description="Rights by executor group; empty for administrators.")


Word = Literal["view", "operate", "edit", "glue", "admin"]


class TokenIn(Schema):
    """A new service token."""

    name: str = Field(min_length=1, max_length=64, examples=["ci"])
    rights: list[Word] = Field(
        min_length=1,
        max_length=5,
        description="Rights on executor groups, each with `view`; `admin`: everything administrators may do.",
    )
    group_ids: list[Id] | None = Field(
        None, min_length=1, max_length=1000, description="Executor groups it is limited to; null: all."
    )
    expires_at: Instant | None = Field(None, description="null: never.")


class TokenOut(Schema):
    """Service token."""

    id: int
    name: str
    hint: str = Field(description="First characters of the token.", examples=["xxl_Ab3d"])
    rights: list[str] = Field(examples=[["view", "operate"]])
    group_ids: list[int] | None = Field(description="Executor groups it is limited to; null: all.")
    created_at: Instant
    created_by: str = Field(description="User or token that created it.")
    expires_at: Instant | None = Field(description="null: never.")
    last_used_at: Instant | None = Field(description="Exact to a minute; null: not used yet.")
    last_address: str = Field(description="Address of the last use.")


class CreatedTokenOut(TokenOut):
    """New service token."""

    token: str = Field(description="The token itself: shown only here.")


class UserRights(Schema):
    """Rights of a user on a group. Every right includes `view`."""

    group_id: Id
    rights: list[RightName]


class UserOut(Schema):
    """User of the console."""

    id: int
    username: str
    role: RoleName
    disabled: bool
    rights: list[UserRights] = Field(description="By group; empty for administrators, who need none.")
    by_provider: bool = Field(description="Whether an identity provider manages the password.")
    weak_password: bool = Field(description="Whether the password is a common one, to be changed.")


class UserIn(Schema):
    """A new user."""

    username: str = Field(min_length=NAME_MIN, max_length=NAME_MAX, examples=["alice"])
    password: str = Field(max_length=PASSWORD_MAX, description=PASSWORD, examples=["battery-staple-9"])
    must_change_password: bool = Field(True, description="Whether it is changed at the first login.")
    role: RoleName = "normal"
    disabled: bool = False
    rights: list[UserRights] = Field([], examples=[[{"group_id": 1, "rights": ["view", "operate"]}]])


class UserPatch(Partial):
    """Changes of a user; what is not given is kept. A new password, role or state ends the logins."""

    password: str = Field("", max_length=PASSWORD_MAX, description=PASSWORD)
    must_change_password: bool = Field(
        True, description="Whether the new `password` is changed at the next login; by default it is."
    )
    role: RoleName = "normal"
    disabled: bool = False
    rights: list[UserRights] = Field(
        [], description="All rights of the user.", examples=[[{"group_id": 1, "rights": ["view"]}]]
    )


class UserQuery(ListQuery):
    """Filters of users."""

    username: str = Field("", description="Part of the name.")
    role: RoleName | None = None
