"""Options of a restore, and its result."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.services.backups.manifest import Manifest
from app.services.backups.reconcile import Settlement

UNPROVEN = "its origin cannot be proven: no code of this installation's application key"


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator permits, and the receiver of notes."""

    #: also over a database with tables, and over other secrets
    replace_all: bool = False
    #: also an unproven backup over the tables of an installation that has an application key
    accepts_unproven: bool = False
    #: called with a note before anything is replaced
    notify: Callable[[str], None] = lambda _note: None


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """A finished restore."""

    manifest: Manifest
    settlement: Settlement
    #: files that were replaced, under their new names
    old_files: list[Path]
    #: whether this installation has made the backup, by its application key
    is_own: bool
    #: tables of a server with this program's prefix that it does not know: of others, or of a newer version
    unknown: list[str]
