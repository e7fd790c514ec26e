"""`xxl_job_variable` and `xxl_job_variable_version`: variables and secrets, and their former values."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, exact_text
from app.models.sealed_text import SealedText

#: characters of a name
NAME_LENGTH = 64


class Variable(Base):
    """Variable or secret of an executor group, or of the installation; a secret has no plain value."""

    __tablename__ = "xxl_job_variable"
    __table_args__ = (Index("ux_xxl_job_variable", "group_id", "name", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(exact_text(NAME_LENGTH))
    #: 0: of the installation
    group_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: value of a variable; null: a secret
    value: Mapped[str | None] = mapped_column(Text)
    #: value of a secret, encrypted; null: a variable. No loaded row has it: ``app.store.variables.values``
    secret: Mapped[str | None] = mapped_column(SealedText, deferred=True, deferred_raiseload=True)
    #: JSON list of the ids of the groups that may use a secret of the installation
    allowed: Mapped[str] = mapped_column(String(2_000), default="[]", server_default="[]")
    #: 1, then one more with each change
    version: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
    updated_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: the user who changed it last
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")

    @property
    def is_secret(self) -> bool:
        """Whether it is a secret; a variable has a value, if only an empty one."""
        return self.value is None


class VariableVersion(Base):
    """Former value of a variable or secret, also of a deleted one."""

    __tablename__ = "xxl_job_variable_version"
    __table_args__ = (
        Index("ix_xxl_job_variable_version", "group_id", "name", "version"),
        Index("ix_xxl_job_variable_version_replaced", "replaced_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(exact_text(NAME_LENGTH))
    group_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    version: Mapped[int] = mapped_column(Integer, default=1, server_default="1")
    value: Mapped[str | None] = mapped_column(Text)
    secret: Mapped[str | None] = mapped_column(SealedText, deferred=True, deferred_raiseload=True)
    #: as of the variable: its values of that time are masked in the runs of these groups
    allowed: Mapped[str] = mapped_column(String(2_000), default="[]", server_default="[]")
    #: when it was changed or deleted
    replaced_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: the user who did that
    username: Mapped[str] = mapped_column(String(64), default="", server_default="")
