"""Handler schemas: JSON Schemas of typed handlers, announced to consoles of this project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import SCHEMAS_DIGEST

#: size limit of one executor's schemas as JSON, in bytes; schemas that do not fit are omitted, in name order
SCHEMAS_MAX = 60_000


@dataclass(frozen=True, slots=True)
class Schemas:
    """Schemas by handler, and a digest by which a console detects changes; "" without schemas."""

    by_handler: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    @classmethod
    def of(cls, schemas: Mapping[str, Any]) -> "Schemas":
        """Return the schemas that fit into SCHEMAS_MAX."""
        by_handler: dict[str, Any] = {}
        size = 2
        for name, schema in sorted(schemas.items()):
            schema_size = len(dump_json({name: schema}))
            if size + schema_size <= SCHEMAS_MAX:
                size += schema_size
                by_handler[name] = schema
        return cls(
            by_handler, sha256(dump_json(by_handler)).hexdigest()[:SCHEMAS_DIGEST] if by_handler else ""
        )


NO_SCHEMAS = Schemas()
