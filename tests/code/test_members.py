"""Members that the client knows: those that the console checks, by the published schema."""

import json
from pathlib import Path
from typing import Any

import pytest

from executor_client.code import members

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs/reference/jobs-as-code.schema.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    ("known", "properties"),
    [
        (members.GROUP_FILE, SCHEMA["properties"]),
        (members.JOB, SCHEMA["$defs"]["CodeJob"]["properties"]),
        (members.GROUP, SCHEMA["$defs"]["CodeGroup"]["properties"]),
        (members.CHANNEL, SCHEMA["$defs"]["CodeChannel"]["properties"]),
        (members.CALENDAR, SCHEMA["$defs"]["CodeCalendar"]["properties"]),
        (members.CODE, SCHEMA["$defs"]["JobCode"]["properties"]),
    ],
)
def test_the_client_knows_the_members_of_the_schema(known: tuple[str, ...], properties: Any) -> None:
    assert sorted(known) == sorted(properties)
