"""Reference of the API: what an OpenAPI 3.1 document describes, as tables to show.

Reads the document as JSON; a reference within it (``$ref``) is followed. An object schema that has a name is
one table, which operations link to.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: methods in the order they are shown
METHODS = ("get", "post", "put", "patch", "delete")
#: characters of a list of values in a type
VALUES_MAX = 200
#: nesting of objects without a name of their own
DEPTH_MAX = 4
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
    text: str
    #: ``path``, ``query`` or ``header``; empty: member of an object
    place: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of an operation."""

    status: str
    text: str
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
    text: str
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
    text: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """Object with a name, and its members."""

    name: str
    text: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """All of a document."""

    version: str
    resources: tuple[Resource, ...]
    objects: tuple[Described, ...]


def read_document(document: Json) -> Reference:
    """Return the tables of a document."""
    return _Reader(document).reference()


class _Reader:
    def __init__(self, document: Json) -> None:
        self._document = document
        schemas = document.get("components", {}).get("schemas", {})
        self._named = {name: schema for name, schema in schemas.items() if "properties" in schema}

    def reference(self) -> Reference:
        operations = list(self._operations())
        texts = {tag["name"]: tag.get("description", "") for tag in self._document.get("tags", ())}
        names = dict.fromkeys([*texts, *(tag for tag, _operation in operations)])
        resources = (
            Resource(name, texts.get(name, ""), tuple(each for tag, each in operations if tag == name))
            for name in names
        )
        objects = (
            Described(name, _text(schema), tuple(self._members(schema)))
            for name, schema in sorted(self._named.items())
        )
        version = str(self._document.get("info", {}).get("version", ""))
        return Reference(version, tuple(each for each in resources if each.operations), tuple(objects))

    def _operations(self) -> Iterator[tuple[str, Operation]]:
        for path, item in self._document.get("paths", {}).items():
            common = item.get("parameters", [])
            for method in METHODS:
                if method in item:
                    operation = item[method]
                    tag = (operation.get("tags") or [""])[0]
                    yield tag, self._operation(method, path, operation, common)

    def _operation(self, method: str, path: str, found: Json, common: list[Json]) -> Operation:
        body = self._resolved(found.get("requestBody", {})).get("content", {}).get(JSON, {})
        schema = self._resolved(body.get("schema", {}))
        parameters = [self._parameter(each) for each in (*common, *found.get("parameters", []))]
        answers = (self._answer(status, each) for status, each in found.get("responses", {}).items())
        return Operation(
            id=found.get("operationId") or f"{method}{path}",
            method=method,
            path=path,
            summary=found.get("summary", ""),
            text=found.get("description", ""),
            parameters=tuple(parameters),
            body=tuple(self._members(schema)),
            body_object=self._object(body.get("schema", {})),
            example=self._body_example(body, schema),
            answers=tuple(sorted(answers, key=lambda answer: answer.status)),
            is_public=found.get("security") == [],
        )

    def _parameter(self, found: Json) -> Member:
        found = self._resolved(found)
        schema = found.get("schema", {})
        example = found.get("example", schema.get("default", _first(schema.get("examples"))))
        return Member(
            found["name"],
            self._type(schema),
            "",
            bool(found.get("required")),
            found.get("description") or _text(schema),
            place=found["in"],
            example="" if example is None else _plain(example),
        )

    def _answer(self, status: str, found: Json) -> Answer:
        found = self._resolved(found)
        content = found.get("content", {})
        named = self._object(content.get(JSON, {}).get("schema", {}))
        return Answer(
            status, found.get("description", ""), tuple(content), named, tuple(found.get("headers", ()))
        )

    def _members(self, schema: Json, prefix: str = "", depth: int = 0) -> Iterator[Member]:
        required = schema.get("required", ())
        for name, found in schema.get("properties", {}).items():
            member = self._resolved(found)
            named = self._object(found)
            yield Member(
                prefix + name,
                self._type(found),
                named,
                name in required,
                found.get("description") or ("" if named else _text(member)),
                example=_plain(_first(found.get("examples", member.get("examples")))),
            )
            nested = member.get("items", member)
            if not named and depth < DEPTH_MAX and "properties" in nested:
                marker = "[]." if "items" in member else "."
                yield from self._members(nested, f"{prefix}{name}{marker}", depth + 1)

    def _type(self, schema: Json) -> str:
        """Return a type in words, such as ``array of text`` or ``integer, 1 to 200, or null``."""
        choices = [each for key in ("anyOf", "oneOf") for each in schema.get(key, ())]
        if choices:
            return " or ".join(dict.fromkeys(self._type(each) for each in choices))
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return name if name in self._named else self._type(self._resolved(schema))
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            text = ", ".join(_plain(value) for value in values)
            return f"one of {text}" if len(text) <= VALUES_MAX and len(values) > 1 else text[:VALUES_MAX]
        type_ = schema.get("type", "any")
        if isinstance(type_, list):
            return " or ".join(self._type({**schema, "type": each}) for each in type_)
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
            return name if name in self._named else ""
        inner = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
        inner += [schema["items"]] if isinstance(schema.get("items"), dict) else []
        return next((name for name in map(self._object, inner) if name), "")

    def _resolved(self, schema: Json) -> Json:
        for _step in range(DEPTH_MAX):
            if "$ref" not in schema:
                break
            found: Any = self._document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            schema = found
        return schema

    def _body_example(self, body: Json, schema: Json) -> str:
        if not body:
            return ""
        given = body.get("example") or schema.get("example") or _first(schema.get("examples"))
        example = given if given is not None else self._example(schema)
        return json.dumps(example, ensure_ascii=False, indent=2)

    def _example(self, schema: Json, depth: int = 0) -> Any:
        """Return a value for a schema: its example or default, otherwise one of its type."""
        given = [schema.get("example"), _first(schema.get("examples")), schema.get("const")]
        given += [_first(schema.get("enum")), schema.get("default")]
        value = next((each for each in given if each is not None), None)
        if value is not None:
            return value
        choices = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
        schema = self._resolved(choices[0] if choices else schema)
        type_ = schema.get("type")
        if choices:
            return None if "default" in schema else self._example(schema, depth)
        if "properties" in schema and depth < DEPTH_MAX:
            required = schema.get("required", ())
            return {
                name: self._example(self._merged(found), depth + 1)
                for name, found in schema["properties"].items()
                if name in required or "examples" in found
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
