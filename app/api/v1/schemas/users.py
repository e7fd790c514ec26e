"""Schemas: users and their rights."""

from typing import Literal

from pydantic import Field

from app.api.v1.schemas.base import Id, ListQuery, Partial, Schema
from app.domain.access.passwords import PASSWORD_MAX
from app.services.accounts.users import NAME_MAX, NAME_MIN

RoleName = Literal["normal", "admin"]
RightName = Literal["view", "operate", "edit", "glue"]
PASSWORD = "Never returned; 8 to 128 characters, and not a common password."


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
