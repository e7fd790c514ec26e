"""Keys in the WSGI environ shared by middleware and views."""

from collections.abc import Mapping
from typing import Any

#: set by a view that has carried out a plain request: what such a request was let through with
PASSED = "xxl_job.passed"
#: error of a request that was tried already; its outcome may be unknown, so it is not tried again
FAILED = "xxl_job.failed"
#: set for requests that the quick path has looked at: looking twice would lose the renewal of a pass, or
#: count twice for a rate limit
TRIED = "xxl_job.tried"
#: id that a request has already
REQUEST_ID = "xxl_job.request_id"


def raise_failed(environ: Mapping[str, Any]) -> None:
    """Raise the error of a request that was tried already, so that it is answered as every other error."""
    error = environ.get(FAILED)
    if error is not None:
        raise error
