"""`xxl_job_token` and `xxl_job_idempotency`: access to the API."""

from sqlalchemy import BigInteger, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.clock import Millis
from app.models.base import Base, BigId, LongText, exact_text


class ApiToken(Base):
    """Access token of the API; the token itself is never stored."""

    __tablename__ = "xxl_job_token"
    __table_args__ = (
        Index("ux_xxl_job_token_hash", "token_hash", unique=True),
        Index("ix_xxl_job_token_user", "user_id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(exact_text(64))
    #: SHA-256 of the token, hex
    token_hash: Mapped[str] = mapped_column(String(64))
    #: first characters of the token, by which its holder recognizes it
    hint: Mapped[str] = mapped_column(String(16), default="", server_default="")
    #: the user it acts as, at most with the rights of that user; 0: a service token, which belongs to no user
    user_id: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    #: comma separated: ``view,operate,edit,glue``, and ``admin`` for what only administrators may do
    rights: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: comma separated ids of the groups it is limited to; empty: all
    group_ids: Mapped[str | None] = mapped_column(Text)
    created_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    created_by: Mapped[str] = mapped_column(String(64), default="", server_default="")
    #: 0: never
    expires_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: 0: not revoked
    revoked_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: 0: not used yet
    last_used_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    last_address: Mapped[str] = mapped_column(String(64), default="", server_default="")


class IdempotentRequest(Base):
    """Answer to a request with an ``Idempotency-Key``, returned again to a repetition of the request."""

    __tablename__ = "xxl_job_idempotency"
    __table_args__ = (
        Index("ux_xxl_job_idempotency_key", "key_hash", unique=True),
        Index("ix_xxl_job_idempotency_created", "created_ms"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    #: SHA-256 of token id and key, hex
    key_hash: Mapped[str] = mapped_column(String(64))
    #: fingerprint of method, path and body
    request_hash: Mapped[str] = mapped_column(String(64), default="", server_default="")
    created_ms: Mapped[Millis] = mapped_column(BigInteger, default=0, server_default="0")
    #: HTTP status of the answer; 0: the request has not been answered
    status: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    location: Mapped[str] = mapped_column(String(255), default="", server_default="")
    body: Mapped[str | None] = mapped_column(LongText)
