"""Idempotency: a request that is repeated with its ``Idempotency-Key`` gets the answer of the first one.

Only successes are stored: a refused request changed nothing and is tried again. The key is stored in the
transaction of the change, so that of two concurrent requests the second waits for the first. Views that open
their own transactions store it before, and their answer after.
"""

import re
from dataclasses import dataclass
from hashlib import sha256

from flask import Request, Response
from sqlalchemy.orm import Session

from app.api.v1.endpoint import Operation
from app.api.v1.etags import replay_etag
from app.clock import DAY_MS, MINUTE_MS, Millis
from app.errors import Conflict, InvalidInput
from app.settings.sealing import sealer
from app.store.nodes import idempotency as store

HEADER = "Idempotency-Key"
#: header of a replayed answer
REPEATED = "Idempotent-Replayed"
#: retention of a stored answer
KEPT_MS: Millis = DAY_MS
#: time after which a key without an answer no longer means a request in progress: its console was killed
OPEN_MS: Millis = 10 * MINUTE_MS
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Key:
    """Hashes of a request's key and of its content."""

    key_hash: str
    request_hash: str


def read_key(request: Request, operation: Operation, caller: int) -> Key | None:
    """Return the key of a request of a caller; None without one. Raises InvalidInput for a malformed one.

    An operation with a secret in its answer takes none.
    """
    text = request.headers.get(HEADER)
    if text is None:
        return None
    if operation.has_secret:
        raise InvalidInput(HEADER, "is not accepted here: the answer contains a secret, which is not kept")
    if not _KEY.fullmatch(text):
        raise InvalidInput(HEADER, "must be 1 to 255 visible ASCII characters")
    content = b"\0".join([request.method.encode(), request.full_path.encode(), request.get_data()])
    # A plain hash would allow guesses of a password in the body.
    request_hash = sealer().fingerprint(sha256(content).hexdigest())
    return Key(sha256(f"{caller}:{text}".encode()).hexdigest(), request_hash)


def reserve(session: Session, key: Key, operation: Operation, *, now_ms: Millis) -> Response | None:
    """Store a key of a request to an operation; return the stored answer if it was used before.

    Raises InvalidInput if it was used for another request, Conflict while that request is being answered.
    """
    lasts = {"kept_ms": KEPT_MS, "open_ms": OPEN_MS}
    if store.insert_key(session, key.key_hash, key.request_hash, now_ms=now_ms, **lasts):
        return None
    row = store.get_key(session, key.key_hash)
    if row.request_hash != key.request_hash:
        raise InvalidInput(HEADER, "was used for another request; choose a new one")
    if not row.status:
        raise Conflict(f"the first request with this {HEADER} is not answered yet")
    answer = Response(row.body, status=row.status, content_type="application/json")
    answer.headers[REPEATED] = "true"
    if row.location:
        answer.headers["Location"] = row.location
    etag = replay_etag(operation, row.body)
    if etag:
        answer.set_etag(etag)
    return answer


def keep(session: Session, key: Key, answer: Response) -> None:
    """Store the answer under its key."""
    store.update_answer(
        session,
        key.key_hash,
        status=answer.status_code,
        location=answer.headers.get("Location", ""),
        body=answer.get_data(as_text=True),
    )


def release(session: Session, key: Key) -> None:
    """Remove the key of a request that failed."""
    store.delete_key(session, key.key_hash)
