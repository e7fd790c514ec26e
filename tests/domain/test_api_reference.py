"""Reference of the API: tables of a document, with references, choices and examples."""

import json
from typing import Any

from app.domain.api_reference import Member, read_document

DOCUMENT: dict[str, Any] = {
    "info": {"version": "1.2"},
    "tags": [{"name": "jobs", "description": "Jobs."}],
    "paths": {
        "/jobs/{job_id}": {
            "patch": {
                "tags": ["jobs"],
                "operationId": "change_job",
                "summary": "Change a job",
                "parameters": [
                    {
                        "name": "job_id",
                        "in": "path",
                        "required": True,
                        "schema": {"type": "integer", "minimum": 1},
                    },
                    {
                        "name": "dry_run",
                        "in": "query",
                        "description": "Only check",
                        "schema": {"type": "boolean", "default": False},
                    },
                ],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/JobPatch"}}}
                },
                "responses": {
                    "200": {
                        "description": "The job",
                        "headers": {"ETag": {}},
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}},
                    },
                    "404": {
                        "description": "None",
                        "content": {
                            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                        },
                    },
                },
            },
            "get": {"tags": ["jobs"], "operationId": "get_job", "security": [], "responses": {}},
        }
    },
    "components": {
        "schemas": {
            "Kind": {"enum": ["BEAN", "GLUE"], "description": "Run mode"},
            "Job": {
                "description": "A job.",
                "properties": {"id": {"type": "integer"}, "runs": {"$ref": "#/components/schemas/Runs"}},
                "required": ["id"],
            },
            "Runs": {
                "properties": {"next": {"anyOf": [{"$ref": "#/components/schemas/Runs"}, {"type": "null"}]}}
            },
            "Problem": {"properties": {"title": {"type": "string"}}},
            "JobPatch": {
                "properties": {
                    "kind": {"$ref": "#/components/schemas/Kind"},
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "maxItems": 9,
                        "examples": [["a"]],
                    },
                    "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 5},
                    "until": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                },
                "required": ["kind"],
            },
        },
    },
}


def test_operations_are_grouped_and_in_the_order_of_their_methods() -> None:
    reference = read_document(DOCUMENT)
    (jobs,) = reference.resources
    assert (reference.version, jobs.name, jobs.description) == ("1.2", "jobs", "Jobs.")
    read, change = jobs.operations
    assert (read.id, read.is_public) == ("get_job", True)
    assert (change.id, change.summary, change.is_public) == ("change_job", "Change a job", False)


def test_operations_have_parameters_and_answers() -> None:
    (jobs,) = read_document(DOCUMENT).resources
    change = jobs.operations[1]
    assert change.parameters == (
        Member("job_id", "integer, at least 1", "", True, "", location="path"),
        Member("dry_run", "boolean", "", False, "Only check", location="query", example="false"),
    )
    (success,), (missing,) = change.successes, change.problems
    assert (success.status, success.object, success.headers) == ("200", "Job", ("ETag",))
    assert (missing.status, missing.description, missing.types) == (
        "404",
        "None",
        ("application/problem+json",),
    )


def test_members_have_types_in_words() -> None:
    (jobs,) = read_document(DOCUMENT).resources
    change = jobs.operations[1]
    assert [(each.name, each.type, each.is_required) for each in change.body] == [
        ("kind", "one of BEAN, GLUE", True),
        ("tags", "array of text, at most 9", False),
        ("at", "instant or null", False),
        ("limit", "integer, 1 to 5", False),
        ("until", "text or integer", False),
    ]
    assert change.body[0].description == "Run mode"
    assert json.loads(change.example) == {"kind": "BEAN", "tags": ["a"]}


def test_objects_with_a_name_link_to_each_other() -> None:
    objects = {each.name: each for each in read_document(DOCUMENT).objects}
    assert list(objects) == ["Job", "JobPatch", "Problem", "Runs"]
    assert [(each.name, each.object) for each in objects["Job"].members] == [("id", ""), ("runs", "Runs")]
    assert [(each.type, each.object) for each in objects["Runs"].members] == [("Runs or null", "Runs")]
