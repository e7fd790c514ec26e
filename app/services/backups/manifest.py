"""Manifest of a backup: what is in the file, and of which program, schema and time."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from app.clock import LATEST_MS, Millis
from app.errors import NotConfigured
from app.settings.sealing import Sealer

#: format of the file; a newer one is refused
FORMAT = 3
#: first format whose manifests have an authentication code
SIGNED_FORMAT = 3
#: purpose of the key of the authentication code
PURPOSE = b"manifests of backups"


class SecretFrom(StrEnum):
    """Where the installation has a secret from."""

    FILE = "file"
    #: a setting: not in the backup
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of a backup."""

    #: version of the program, and revision of the schema
    program: str
    schema: str
    #: ``sqlite``, ``mysql`` or ``postgresql``; a backup is restored into the same kind
    database: str
    #: PostgreSQL: schema of the tables; empty: the database has none
    namespace: str
    made_ms: Millis
    #: whether the copy was restored into a scratch database and counted there
    verified: bool
    #: table -> number of rows
    rows: dict[str, int]
    #: name of a secret file in the home folder -> where the installation has it from
    secrets: dict[str, SecretFrom]
    #: fingerprint of the application key; a database is of no use without its key
    key_fingerprint: str
    #: file in the archive -> SHA-256
    files: dict[str, str]
    #: zone of the DATETIME columns; empty in format 1
    time_zone: str = ""
    format: int = FORMAT
    #: authentication code of all the rest, by the application key; empty: there was no key
    code: str = ""

    def to_json(self) -> bytes:
        """Return the manifest as stored."""
        return (json.dumps(asdict(self), indent=1, sort_keys=True) + "\n").encode()


def code_of(text: bytes, sealer: Sealer) -> str:
    """Compute the authentication code of a stored manifest, whose own code is ignored."""
    fields = {name: value for name, value in json.loads(text).items() if name != "code"}
    return sealer.code_of(json.dumps(fields, sort_keys=True).encode(), purpose=PURPOSE)


def read_manifest(text: bytes) -> Manifest:
    """Return a stored manifest; raises NotConfigured if it is not one of this program."""
    try:
        fields: dict[str, Any] = json.loads(text)
        if fields["format"] > FORMAT:
            raise NotConfigured("the backup was made by a newer program; restore it with that one")
        fields["secrets"] = {name: SecretFrom(source) for name, source in fields["secrets"].items()}
        manifest = Manifest(**fields)
        _require_types(manifest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise NotConfigured("the file is not a backup of this program: its manifest cannot be read") from exc
    return manifest


def _require_types(manifest: Manifest) -> None:
    """Raise ValueError or TypeError if a value is none that a backup has."""
    texts = [manifest.program, manifest.schema, manifest.database, manifest.namespace, manifest.time_zone]
    texts += [manifest.key_fingerprint, manifest.code, *manifest.files.values()]
    for text in texts:
        str.encode(text)
    for number in [manifest.format, *manifest.rows.values(), manifest.made_ms]:
        if type(number) is not int or number < 0:
            raise TypeError("a number is expected")
    if manifest.made_ms > LATEST_MS:
        raise ValueError("made after the latest instant")
