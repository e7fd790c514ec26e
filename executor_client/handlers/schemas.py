"""Handler schemas: the JSON Schemas of typed handlers, as they are announced to consoles of this project."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import SCHEMAS_DIGEST

#: longest schemas of one executor as JSON, in bytes; those that do not fit are left out, in order of names
SCHEMAS_MAX = 60_000


@dataclass(frozen=True, slots=True)
class Schemas:
    """Schemas by handler, and a digest by which a console knows whether it has them; "" without any."""

    by_handler: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    @classmethod
    def of(cls, schemas: Mapping[str, Any]) -> "Schemas":
        """Return those schemas that fit into SCHEMAS_MAX."""
        kept: dict[str, Any] = {}
        size = 2
        for name, schema in sorted(schemas.items()):
            own = len(dump_json({name: schema}))
            if size + own <= SCHEMAS_MAX:
                size += own
                kept[name] = schema
        return cls(kept, sha256(dump_json(kept)).hexdigest()[:SCHEMAS_DIGEST] if kept else "")


NO_SCHEMAS = Schemas()
