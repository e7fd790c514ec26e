"""Schemas: rights of a caller."""

from pydantic import Field

from app.api.v1.schemas.base import Instant, Schema


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
