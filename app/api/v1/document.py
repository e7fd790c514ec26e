"""OpenAPI 3.1 document of the API, generated from the schemas that validate requests."""

import inspect
import re
from collections.abc import Iterable
from typing import Any

from openapi_pydantic import OpenAPI
from openapi_pydantic.util import PydanticSchema, construct_open_api_with_schema_class
from pydantic import BaseModel

from app.api.v1.endpoint import ADMIN, ANY_TOKEN, PUBLIC, Operation
from app.api.v1.problems import CONTENT_TYPE as PROBLEM_TYPE
from app.api.v1.schemas.base import ID_MAX, Problem
from executor_client.wire.version import VERSION

DESCRIPTION = """Every request but those marked public needs an API token: `Authorization: Bearer xxl_…`.
Errors are `application/problem+json`. Writes take `dry_run=true` and `Idempotency-Key`; lists continue with
`cursor`; instants are RFC 3339 in UTC."""
_PATH_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
#: name that pydantic gives to a list; ours is ``JobList``
_LISTED = re.compile(r'(?<=[/"])Listed_(\w+?)(?:Out)?_(?=")')
#: address of the API as seen from the document, so that it holds behind any proxy
SERVER = "."
#: statuses that an operation may answer with, besides its own
ERRORS = {
    "400": "The request is malformed.",
    "401": "The API token is missing, unknown, expired or revoked.",
    "403": "The API token lacks the right.",
    "404": "There is no such object, or it is not visible to the API token.",
    "409": "The state of the object does not allow this.",
    "412": "The object is not the version that If-Match names.",
    "415": "The body is not JSON.",
    "422": "Values are invalid; `errors` names each.",
    "429": "Too many requests; try again after Retry-After seconds.",
    "502": "The executor did not answer, or not as an executor does.",
    "503": "Too busy, or without its database; try again after Retry-After seconds.",
}
#: error statuses of writes only
OF_WRITES = ("412", "415")
#: error status of operations that call executors
OF_CALLS = "502"


def build_document(operations: Iterable[Operation]) -> OpenAPI:
    """Return the document of operations."""
    paths: dict[str, dict[str, Any]] = {}
    resources = {}
    for operation in operations:
        resources[operation.resource.name] = operation.resource.description
        paths.setdefault(open_path(operation.path), {})[operation.method.lower()] = _describe(operation)
    document = {
        "openapi": "3.1.1",
        "info": {"title": "Job scheduler API", "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": SERVER}],
        "tags": [{"name": name, "description": text} for name, text in resources.items()],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
    return construct_open_api_with_schema_class(OpenAPI.model_validate(document))


def openapi_json(operations: Iterable[Operation]) -> str:
    """Return the document of operations as JSON."""
    # Unset members are left out: some of them, even if false, are allowed in query parameters only.
    text = build_document(operations).model_dump_json(by_alias=True, exclude_none=True, exclude_unset=True)
    return _LISTED.sub(r"\1List", text)


def open_path(path: str) -> str:
    """Return a path of Flask as OpenAPI writes it: ``/jobs/{job_id}``."""
    return _PATH_PARAMETER.sub(lambda match: "{" + match[2] + "}", path)


def _describe(operation: Operation) -> dict[str, Any]:
    first, _, details = inspect.cleandoc(operation.view.__doc__ or "").partition("\n")
    entry: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.resource.name],
        "summary": first.rstrip("."),
        "description": f"{details.strip()}\n\nNeeds {_needs(operation)}.".strip(),
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_headers(operation)],
        "responses": _responses(operation),
        "security": [] if operation.right == PUBLIC else [{"token": []}],
    }
    if operation.body is not None:
        entry["requestBody"] = {"content": {"application/json": _media(operation.body)}, "required": True}
    return entry


def _needs(operation: Operation) -> str:
    words = {PUBLIC: "no API token", ANY_TOKEN: "any API token", ADMIN: "the right `admin`"}
    return words.get(operation.right, f"the right `{operation.right}` on the executor group")


def _path_parameters(operation: Operation) -> Iterable[dict[str, Any]]:
    for kind, name in _PATH_PARAMETER.findall(operation.path):
        schema = {"type": "integer", "minimum": 1, "maximum": ID_MAX} if kind == "int" else {"type": "string"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(operation: Operation) -> Iterable[dict[str, Any]]:
    if operation.query is not None:
        query_schema = operation.query.model_json_schema()
        required_names = query_schema.get("required", ())
        for name, schema in query_schema.get("properties", {}).items():
            parameter_schema = _inline(schema, query_schema.get("$defs", {}))
            text = parameter_schema.pop("description", None)
            yield {
                "name": name,
                "in": "query",
                "required": name in required_names,
                "description": text,
                "schema": parameter_schema,
            }
    if not operation.is_safe:
        yield {
            "name": "dry_run",
            "in": "query",
            "description": "Check everything and answer as usual, but change nothing.",
            "schema": {"type": "boolean", "default": False},
        }


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a schema with its references resolved, because parameters are no components."""
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inline(definitions[name], definitions), **siblings}
    return {key: _inline(value, definitions) for key, value in schema.items()}


def _headers(operation: Operation) -> Iterable[dict[str, Any]]:
    if operation.is_safe:
        return
    if not operation.has_secret:
        yield {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A request repeated with its key changes nothing and gets the first answer;"
            " for 24 h.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"},
        }
    if operation.method != "POST":
        yield {
            "name": "If-Match",
            "in": "header",
            "description": "ETag of the version to change; any other is refused with 412.",
            "schema": {"type": "string"},
        }


def _media(schema: type[BaseModel]) -> dict[str, Any]:
    return {"schema": PydanticSchema.model_construct(schema_class=schema)}


def _responses(operation: Operation) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "Done.", "headers": _answer_headers(operation)}
    if operation.answer is not None:
        answer["content"] = {operation.content_type: _media(operation.answer)}
    elif operation.status != 204:
        answer["content"] = {operation.content_type: {}}
    if operation.streams:
        answer["content"] |= {content_type: {} for content_type in operation.streams}
    unused_statuses: tuple[str, ...] = ("401", "403") if operation.right == PUBLIC else ()
    unused_statuses += OF_WRITES if operation.is_safe else ()
    unused_statuses += () if operation.calls_executors else (OF_CALLS,)
    errors = {
        status: {"description": text, "content": {PROBLEM_TYPE: _media(Problem)}}
        for status, text in ERRORS.items()
        if status not in unused_statuses
    }
    return {str(operation.status): answer, **errors}


def _answer_headers(operation: Operation) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if operation.status in (201, 202) and operation.answer and "id" in operation.answer.model_fields:
        headers["Location"] = {"description": "Path of the object.", "schema": {"type": "string"}}
    if operation.etag:
        headers["ETag"] = {
            "description": "Version of the object, for If-Match.",
            "schema": {"type": "string"},
        }
    return headers
