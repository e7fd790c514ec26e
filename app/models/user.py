"""`xxl_job_user`: users of the console."""

from sqlalchemy import Index, Integer, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from app.domain.enums import Role
from app.models.base import Base, exact_text


class User(Base):
    """User; `password` is an Argon2id hash, with a prefix if it must be changed or renewed."""

    __tablename__ = "xxl_job_user"
    __table_args__ = (
        Index("i_username", "username", unique=True),
        Index("ux_xxl_job_user_identity", "identity", unique=True),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    username: Mapped[str] = mapped_column(String(50))
    password: Mapped[str] = mapped_column(String(255))
    role: Mapped[int] = mapped_column(SmallInteger)
    #: comma separated group ids of a normal user
    permission: Mapped[str | None] = mapped_column(String(255))

    disabled: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    language: Mapped[str] = mapped_column(String(10), default="", server_default="")
    time_zone: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: see ``WeakPassword``
    weak_password: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    #: issuer and subject of the OpenID provider; null: a local user
    identity: Mapped[str | None] = mapped_column(exact_text(255))

    @property
    def is_admin(self) -> bool:
        """Whether the user may do everything."""
        return self.role == Role.ADMIN

    @property
    def group_ids(self) -> list[int]:
        """The groups a normal user may see."""
        return [int(text) for text in (self.permission or "").split(",") if text.isascii() and text.isdigit()]
