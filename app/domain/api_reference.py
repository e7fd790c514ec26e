"""API reference: tables of operations and objects, built from the OpenAPI 3.1 document.

Reads the document as ``api.v1.document`` writes it: references lead to schemas only, and each operation has
an id and a tag. An object schema that has a name is one table, which operations link to.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: methods in the order they are shown
METHODS = ("get", "post", "put", "patch", "delete")
#: longest list of enum values, in characters
VALUES_MAX = 200
#: deepest nesting of objects in an example
NESTING_MAX = 4
JSON = "application/json"
#: highest id of most objects: a number from 1 to it is called an id
ID_MAX = 2**31 - 1

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """Parameter of an operation, or member of an object."""

    name: str
    #: such as ``integer, 1 to 200``
    type: str
    #: name of the object it holds, if that has a table
    object: str
    is_required: bool
    description: str
    #: ``path``, ``query`` or ``header``; empty: member of an object
    location: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of an operation."""

    status: str
    description: str
    types: tuple[str, ...]
    #: name of the object, if it has a table
    object: str
    headers: tuple[str, ...] = ()

    @property
    def is_problem(self) -> bool:
        """Whether it reports an error."""
        return self.status >= "400"


@dataclass(frozen=True, slots=True)
class Operation:
    """Operation: a method of a path."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[Member, ...]
    #: members of the body; empty without one
    body: tuple[Member, ...]
    #: name of the object of the body
    body_object: str
    #: an example of the body, as JSON
    example: str
    answers: tuple[Answer, ...]
    is_public: bool

    @property
    def successes(self) -> tuple[Answer, ...]:
        """Return the answers that report no error."""
        return tuple(answer for answer in self.answers if not answer.is_problem)

    @property
    def problems(self) -> tuple[Answer, ...]:
        """Return the answers that report an error."""
        return tuple(answer for answer in self.answers if answer.is_problem)


@dataclass(frozen=True, slots=True)
class Resource:
    """Operations of one kind of objects."""

    name: str
    description: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class ObjectSchema:
    """Named object and its members."""

    name: str
    description: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """Operations and objects of one document."""

    version: str
    resources: tuple[Resource, ...]
    objects: tuple[ObjectSchema, ...]


def read_document(document: Json) -> Reference:
    """Return the tables of a document."""
    return _Reader(document).reference()


class _Reader:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._components: Mapping[str, Json] = document["components"]["schemas"]
        self._schemas = {name: schema for name, schema in self._components.items() if "properties" in schema}

    def reference(self) -> Reference:
        operations = list(self._operations())
        resources = (
            Resource(
                tag["name"],
                tag["description"],
                tuple(operation for name, operation in operations if name == tag["name"]),
            )
            for tag in self._document["tags"]
        )
        objects = (
            ObjectSchema(name, _text(schema), tuple(self._members(schema)))
            for name, schema in sorted(self._schemas.items())
        )
        return Reference(self._document["info"]["version"], tuple(resources), tuple(objects))

    def _operations(self) -> Iterator[tuple[str, Operation]]:
        for path, item in self._document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield item[method]["tags"][0], self._operation(method, path, item[method])

    def _operation(self, method: str, path: str, operation: Json) -> Operation:
        body = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
        schema = self._resolve(body)
        example = json.dumps(self._example(schema), ensure_ascii=False, indent=2) if body else ""
        return Operation(
            id=operation["operationId"],
            method=method,
            path=path,
            summary=operation.get("summary", ""),
            description=operation.get("description", ""),
            parameters=tuple(map(self._parameter, operation.get("parameters", ()))),
            body=tuple(self._members(schema)),
            body_object=self._object(body),
            example=example,
            answers=tuple(self._answer(*answer) for answer in sorted(operation["responses"].items())),
            is_public=operation.get("security") == [],
        )

    def _parameter(self, parameter: Json) -> Member:
        schema = parameter["schema"]
        return Member(
            parameter["name"],
            self._type(schema),
            "",
            bool(parameter.get("required")),
            parameter.get("description") or _text(schema),
            location=parameter["in"],
            example=_plain(schema.get("default", _first(schema.get("examples")))),
        )

    def _answer(self, status: str, answer: Json) -> Answer:
        content = answer.get("content", {})
        object_name = self._object(content.get(JSON, {}).get("schema", {}))
        headers = tuple(answer.get("headers", ()))
        return Answer(status, answer["description"], tuple(content), object_name, headers)

    def _members(self, schema: Json) -> Iterator[Member]:
        required_names = schema.get("required", ())
        for name, schema_of_member in schema.get("properties", {}).items():
            member = self._resolve(schema_of_member)
            object_name = self._object(schema_of_member)
            yield Member(
                name,
                self._type(schema_of_member),
                object_name,
                name in required_names,
                schema_of_member.get("description") or ("" if object_name else _text(member)),
                example=_plain(_first(schema_of_member.get("examples", member.get("examples")))),
            )

    def _type(self, schema: Json) -> str:
        """Return a type in words, such as ``array of text`` or ``integer, 1 to 200, or null``."""
        if alternatives := _alternatives(schema):
            return " or ".join(dict.fromkeys(map(self._type, alternatives)))
        if "$ref" in schema:
            name = _name(schema)
            return name if name in self._schemas else self._type(self._components[name])
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            text = ", ".join(_plain(value) for value in values)
            return f"one of {text}" if len(text) <= VALUES_MAX and len(values) > 1 else text[:VALUES_MAX]
        type_ = schema.get("type", "any")
        if type_ == "array":
            return ", ".join([f"array of {self._type(schema.get('items', {}))}", *_bounds(schema)])
        if type_ == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"object of {self._type(schema['additionalProperties'])}"
        formats = {"date-time": "instant", "date": "day", "uuid": "UUID"}
        word = formats.get(schema.get("format", ""), "text" if type_ == "string" else str(type_))
        word = "id" if (schema.get("minimum"), schema.get("maximum")) == (1, ID_MAX) else word
        return ", ".join([word, *_bounds(schema)])

    def _object(self, schema: Json) -> str:
        """Return the name of the object that a schema holds, also in an array or beside null."""
        if "$ref" in schema:
            return _name(schema) if _name(schema) in self._schemas else ""
        inner = [*_alternatives(schema), *([schema["items"]] if "items" in schema else ())]
        return next(filter(None, map(self._object, inner)), "")

    def _resolve(self, schema: Json) -> Json:
        """Return a schema, or the one that it refers to."""
        return self._components[_name(schema)] if "$ref" in schema else schema

    def _example(self, schema: Json, depth: int = 0) -> Any:
        """Return a value for a schema: its example or default, otherwise one of its type."""
        explicit = [_first(schema.get("examples")), schema.get("const"), _first(schema.get("enum"))]
        value = next((choice for choice in (*explicit, schema.get("default")) if choice is not None), None)
        if value is not None:
            return value
        if alternatives := _alternatives(schema):
            first = self._resolve(alternatives[0])
            return None if "default" in first else self._example(first, depth)
        if "properties" in schema and depth < NESTING_MAX:
            required_names = schema.get("required", ())
            return {
                name: self._example({**self._resolve(member), **member}, depth + 1)
                for name, member in schema["properties"].items()
                if name in required_names or "examples" in member
            }
        if schema.get("type") == "array":
            return []
        return {"string": "text", "integer": 1, "number": 1, "boolean": False, "object": {}}.get(
            str(schema.get("type"))
        )


def _bounds(schema: Json) -> Iterator[str]:
    if (schema.get("minimum"), schema.get("maximum")) == (1, ID_MAX):
        return
    low, high = _number(schema.get("minimum")), _number(schema.get("maximum"))
    if low is not None and high is not None:
        yield f"{low} to {high}"
    elif low is not None:
        yield f"at least {low}"
    elif high is not None:
        yield f"at most {high}"
    if "maxLength" in schema:
        yield f"at most {schema['maxLength']} characters"
    if "maxItems" in schema:
        yield f"at most {schema['maxItems']}"


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _alternatives(schema: Json) -> list[Json]:
    """Return the schemas of which a value fits one; empty: it has a single type."""
    alternatives: list[Json] = schema.get("anyOf") or schema.get("oneOf") or []
    return alternatives


def _name(schema: Json) -> str:
    """Return the name of the schema that one refers to."""
    return str(schema["$ref"].rpartition("/")[2])


def _text(schema: Json) -> str:
    return str(schema.get("description", ""))


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else None


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
