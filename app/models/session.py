"""`xxl_job_session`: login sessions."""

from sqlalchemy import BigInteger, Index, Integer, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId


class LoginSession(Base):
    """Login; the token in the cookie is never stored."""

    __tablename__ = "xxl_job_session"
    __table_args__ = (
        Index("ux_xxl_job_session_token", "token_hash", unique=True),
        Index("ix_xxl_job_session_user", "user_id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    #: SHA-256 of the token, hex
    token_hash: Mapped[str] = mapped_column(String(64))
    user_id: Mapped[int] = mapped_column(Integer)
    #: 1: "remember me" was ticked, so the longer limits apply
    remember: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
    created_ms: Mapped[Millis] = mapped_column(BigInteger)
    last_seen_ms: Mapped[Millis] = mapped_column(BigInteger)
    expires_ms: Mapped[Millis] = mapped_column(BigInteger)
    address: Mapped[str] = mapped_column(String(64), default="", server_default="")
    agent: Mapped[str] = mapped_column(String(255), default="", server_default="")
    #: when the password was last confirmed for GLUE; 0: not yet
    confirmed_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: 1: logged in by the OpenID provider
    sign_on: Mapped[int] = mapped_column(SmallInteger, default=0, server_default="0")
