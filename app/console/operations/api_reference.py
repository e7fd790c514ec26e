"""Reference of the API: its operations, and a form to try each, from the OpenAPI document.

The document is in English in every language of the console.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from flask import Blueprint, current_app, render_template
from flask.typing import ResponseReturnValue

from app.console.web.access import Access
from app.console.web.current import console_url, context_path
from app.domain.api_reference import Operation, Reference, read_document

blueprint = Blueprint("api_reference", __name__)
POLICY = {
    "show": Access.LOGIN,
}
#: the application's function that makes the document, set by its factory
DOCUMENT = "xxl_job_api_document"
#: path of the API below the context path
BASE = "/api/v1"


@blueprint.get("/help/api")
def show() -> ResponseReturnValue:
    """Show all operations."""
    return render_template(
        "help/api.html",
        reference=_reference(current_app.extensions[DOCUMENT]),
        base=console_url() + BASE,
        base_path=context_path(BASE),
        curl=_curl,
    )


@lru_cache(maxsize=1)
def _reference(document: Callable[[], Mapping[str, Any]]) -> Reference:
    return read_document(document())


def _curl(operation: Operation, base: str) -> str:
    """Return a command that calls an operation; in a POSIX shell."""
    words = ["curl"]
    if operation.method != "get":
        words += ["-X", operation.method.upper()]
    if not operation.is_public:
        words += ["-H", '"Authorization: Bearer $TOKEN"']
    if operation.example:
        words += ["-H", "'Content-Type: application/json'", "-d", _quote(operation.example)]
    return " ".join([*words, _quote(base + operation.path)])


def _quote(text: str) -> str:
    safe = text.replace("'", "'\\''")
    return f"'{safe}'"
