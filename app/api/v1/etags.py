"""ETags: versions of objects in the answers of GET. ``If-Match`` limits a change to one version."""

from hashlib import sha256
from typing import Any

from flask import Request
from pydantic import ValidationError
from werkzeug.exceptions import PreconditionFailed

from app.api.v1.endpoint import Call, Operation
from app.api.v1.schemas.base import Schema
from app.errors import InvalidInput

HEADER = "If-Match"


def etag_of(answer: Schema) -> str:
    """Return the ETag of an answer, without quotes."""
    return sha256(answer.model_dump_json(exclude=set(answer.VOLATILE)).encode()).hexdigest()[:32]


def replay_etag(operation: Operation, body: str | None) -> str:
    """Return the ETag of a stored answer; empty: it had none, or another version of the program wrote it."""
    if not (operation.etag and operation.answer and body):
        return ""
    try:
        return etag_of(operation.answer.model_validate_json(body))
    except ValidationError:
        return ""


def check_if_match(
    request: Request, operation: Operation, reader: Operation | None, call: Call, path: dict[str, Any]
) -> None:
    """Raise PreconditionFailed (412) unless the object is as the ``If-Match`` header says.

    A header without any ETag raises InvalidInput.

    ``reader``: the GET of the same path. Within a transaction the object is locked first, so that it cannot
    change after the comparison; a view with its own transactions may see another change in between.
    """
    if HEADER not in request.headers:
        return
    if not request.if_match:  # for example an empty variable of a script that meant to limit its change
        raise InvalidInput(HEADER, "must be the ETag of an answer, in its quotes")
    if reader is None:
        raise PreconditionFailed("this path has no ETag; leave If-Match out")
    if operation.lock is not None:
        operation.lock(call.session, **path)
    if not request.if_match.contains(etag_of(reader.view(call, **path))):
        raise PreconditionFailed("the object has changed since; read it again and repeat the change")
