"""Access control of the API: bearer tokens in the ``Authorization`` header. Cookies are never read."""

from math import ceil

from flask import Request

from app.api.v1.endpoint import ADMIN, ANY_TOKEN, Operation
from app.clock import SECOND_MS, Millis, monotonic_ms
from app.domain.access.call_rate import CallRate
from app.domain.access.permissions import Actor, Right
from app.domain.text.texts import N_
from app.errors import PermissionDenied, RetryLater, Unauthorized
from app.services.accounts.api_tokens import ApiCaller, authenticate

#: key in the WSGI environment: actor of a command on the server; no header can set it
LOCAL_ACTOR = "xxl_job.local_actor"
_SCHEME = "bearer"
#: requests per second of one API token on average, and at once
RATE, BURST = 300, 600


def find_caller(request: Request, *, now_ms: Millis) -> ApiCaller:
    """Return the caller of a request; raises Unauthorized."""
    local = request.environ.get(LOCAL_ACTOR)
    if isinstance(local, Actor):
        return ApiCaller(token_id=0, name="", actor=local, expires_ms=0, last_used_ms=0)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if not scheme:
        raise Unauthorized("send an API token: Authorization: Bearer xxl_…")
    if scheme.lower() != _SCHEME:
        raise Unauthorized("the Authorization header must be: Bearer and an API token")
    return authenticate(token.strip(), address=request.remote_addr or "", now_ms=now_ms)


def check_access(operation: Operation, caller: ApiCaller, rate: CallRate) -> None:
    """Raise PermissionDenied if the caller has the right on no group, RetryLater above its rate."""
    if caller.token_id and (wait_ms := rate.take(caller.token_id, at_ms=monotonic_ms())):
        raise RetryLater(f"more than {RATE} requests a second", retry_after_s=ceil(wait_ms / SECOND_MS))
    if operation.right == ANY_TOKEN or caller.actor.is_admin:
        return
    if operation.right == ADMIN or not caller.actor.has_anywhere(Right(operation.right)):
        raise PermissionDenied(N_("permission denied"))
