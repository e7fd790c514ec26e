"""API reference: tables of operations and objects, built from the OpenAPI 3.1 document.

Reads the document as JSON; a reference within it (``$ref``) is followed. An object schema that has a name is
one table, which operations link to.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: methods in the order they are shown
METHODS = ("get", "post", "put", "patch", "delete")
#: longest list of enum values, in characters
VALUES_MAX = 200
#: deepest nesting of objects without a name of their own
NESTING_MAX = 4
#: most references followed in a row, so that a circle of them ends
REFERENCES_MAX = 4
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
        schemas = document.get("components", {}).get("schemas", {})
        self._schemas = {name: schema for name, schema in schemas.items() if "properties" in schema}

    def reference(self) -> Reference:
        operations = list(self._operations())
        descriptions = {tag["name"]: tag.get("description", "") for tag in self._document.get("tags", ())}
        names = dict.fromkeys([*descriptions, *(tag for tag, _operation in operations)])
        resources = (
            Resource(
                name,
                descriptions.get(name, ""),
                tuple(operation for tag, operation in operations if tag == name),
            )
            for name in names
        )
        objects = (
            ObjectSchema(name, _text(schema), tuple(self._members(schema)))
            for name, schema in sorted(self._schemas.items())
        )
        version = str(self._document.get("info", {}).get("version", ""))
        return Reference(
            version, tuple(resource for resource in resources if resource.operations), tuple(objects)
        )

    def _operations(self) -> Iterator[tuple[str, Operation]]:
        for path, item in self._document.get("paths", {}).items():
            common = item.get("parameters", [])
            for method in METHODS:
                if method in item:
                    operation = item[method]
                    tag = (operation.get("tags") or [""])[0]
                    yield tag, self._operation(method, path, operation, common)

    def _operation(self, method: str, path: str, operation: Json, common: list[Json]) -> Operation:
        body = self._resolved(operation.get("requestBody", {})).get("content", {}).get(JSON, {})
        schema = self._resolved(body.get("schema", {}))
        parameters = [self._parameter(item) for item in (*common, *operation.get("parameters", []))]
        answers = (self._answer(status, answer) for status, answer in operation.get("responses", {}).items())
        return Operation(
            id=operation.get("operationId") or f"{method}{path}",
            method=method,
            path=path,
            summary=operation.get("summary", ""),
            description=operation.get("description", ""),
            parameters=tuple(parameters),
            body=tuple(self._members(schema)),
            body_object=self._object(body.get("schema", {})),
            example=self._body_example(body, schema),
            answers=tuple(sorted(answers, key=lambda answer: answer.status)),
            is_public=operation.get("security") == [],
        )

    def _parameter(self, parameter: Json) -> Member:
        parameter = self._resolved(parameter)
        schema = parameter.get("schema", {})
        example = parameter.get("example", schema.get("default", _first(schema.get("examples"))))
        return Member(
            parameter["name"],
            self._type(schema),
            "",
            bool(parameter.get("required")),
            parameter.get("description") or _text(schema),
            location=parameter["in"],
            example="" if example is None else _plain(example),
        )

    def _answer(self, status: str, answer: Json) -> Answer:
        answer = self._resolved(answer)
        content = answer.get("content", {})
        object_name = self._object(content.get(JSON, {}).get("schema", {}))
        return Answer(
            status,
            answer.get("description", ""),
            tuple(content),
            object_name,
            tuple(answer.get("headers", ())),
        )

    def _members(self, schema: Json, prefix: str = "", depth: int = 0) -> Iterator[Member]:
        required_names = schema.get("required", ())
        for name, schema_of_member in schema.get("properties", {}).items():
            member = self._resolved(schema_of_member)
            object_name = self._object(schema_of_member)
            yield Member(
                prefix + name,
                self._type(schema_of_member),
                object_name,
                name in required_names,
                schema_of_member.get("description") or ("" if object_name else _text(member)),
                example=_plain(_first(schema_of_member.get("examples", member.get("examples")))),
            )
            item_schema = member.get("items", member)
            if not object_name and depth < NESTING_MAX and "properties" in item_schema:
                marker = "[]." if "items" in member else "."
                yield from self._members(item_schema, f"{prefix}{name}{marker}", depth + 1)

    def _type(self, schema: Json) -> str:
        """Return a type in words, such as ``array of text`` or ``integer, 1 to 200, or null``."""
        choices = [choice for key in ("anyOf", "oneOf") for choice in schema.get(key, ())]
        if choices:
            return " or ".join(dict.fromkeys(self._type(choice) for choice in choices))
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return name if name in self._schemas else self._type(self._resolved(schema))
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            text = ", ".join(_plain(value) for value in values)
            return f"one of {text}" if len(text) <= VALUES_MAX and len(values) > 1 else text[:VALUES_MAX]
        type_ = schema.get("type", "any")
        if isinstance(type_, list):
            return " or ".join(self._type({**schema, "type": choice}) for choice in type_)
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
            name = schema["$ref"].rpartition("/")[2]
            return name if name in self._schemas else ""
        inner = [choice for key in ("anyOf", "oneOf", "allOf") for choice in schema.get(key, ())]
        inner += [schema["items"]] if isinstance(schema.get("items"), dict) else []
        return next((name for name in map(self._object, inner) if name), "")

    def _resolved(self, schema: Json) -> Json:
        for _step in range(REFERENCES_MAX):
            if "$ref" not in schema:
                break
            target: Any = self._document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            schema = target
        return schema

    def _body_example(self, body: Json, schema: Json) -> str:
        if not body:
            return ""
        explicit = body.get("example") or schema.get("example") or _first(schema.get("examples"))
        example = explicit if explicit is not None else self._example(schema)
        return json.dumps(example, ensure_ascii=False, indent=2)

    def _example(self, schema: Json, depth: int = 0) -> Any:
        """Return a value for a schema: its example or default, otherwise one of its type."""
        explicit = [schema.get("example"), _first(schema.get("examples")), schema.get("const")]
        explicit += [_first(schema.get("enum")), schema.get("default")]
        value = next((choice for choice in explicit if choice is not None), None)
        if value is not None:
            return value
        choices = [choice for key in ("anyOf", "oneOf", "allOf") for choice in schema.get(key, ())]
        schema = self._resolved(choices[0] if choices else schema)
        type_ = schema.get("type")
        if choices:
            return None if "default" in schema else self._example(schema, depth)
        if "properties" in schema and depth < NESTING_MAX:
            required_names = schema.get("required", ())
            return {
                name: self._example(self._merged(member), depth + 1)
                for name, member in schema["properties"].items()
                if name in required_names or "examples" in member
            }
        if type_ == "array":
            return []
        return {"string": "text", "integer": 1, "number": 1, "boolean": False, "object": {}}.get(str(type_))

    def _merged(self, schema: Json) -> Json:
        return {**self._resolved(schema), **{key: schema[key] for key in schema if key != "$ref"}}


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


def _text(schema: Json) -> str:
    return str(schema.get("description", ""))


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else None


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
