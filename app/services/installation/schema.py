"""Schema revisions that the migrations of this program know.

The files of the migrations are read, not executed: Alembic would cost every process 8 MB.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from app.database.moves import FILLING_REVISION, MOVED_REVISION
from app.errors import NotConfigured

MIGRATIONS = Path(__file__).resolve().parents[3] / "migrations"
#: the assignments of a migration that place it in the chain
_PLACES = re.compile(r'^(revision|down_revision|REPLACES) = (None|"[^"]*"|\([^)]*\))$', re.MULTILINE)
#: stands for a revision while a restore is filling the database
RESTORING = "restoring"


@cache
def newest_revision() -> str:
    """Return the revision of the schema that this program needs; reads the migrations once."""
    return Revisions().newest


class Revisions:
    """Revisions of the migrations in a folder, which are one chain."""

    def __init__(self) -> None:
        #: revision -> the one to start from, for those that were replaced by others
        self.replaced: dict[str, str] = {}
        self._known = set[str]()
        previous = set[str | None]()
        for file in (MIGRATIONS / "versions").glob("*.py"):
            places: dict[str, Any] = {
                name: ast.literal_eval(text) for name, text in _PLACES.findall(file.read_text("utf-8"))
            }
            revision, down, former = places["revision"], places["down_revision"], places.get("REPLACES", ())
            self._known.add(revision)
            previous.add(down)
            self.replaced |= dict.fromkeys(former, down)  # adds what they lack
            self.replaced |= dict.fromkeys(former[-1:], revision)  # has the same schema
        (self.newest,) = self._known - previous

    def require_known(self, revision: str | None) -> None:
        """Raise NotConfigured if an upgrade cannot start from this revision; None: from an empty database."""
        if revision == RESTORING:
            raise NotConfigured(
                "the database is incomplete, because a restore was broken off;"
                " run the restore again, with --replace"
            )
        if revision is not None and revision.startswith(FILLING_REVISION):
            raise NotConfigured(
                "duetime promote is filling the database, or was broken off: the old database goes on;"
                " run duetime promote again (docs/promote.md)"
            )
        if revision == MOVED_REVISION:
            raise NotConfigured("the database has moved to another one (docs/promote.md)")
        if revision is not None and revision not in self._known and revision not in self.replaced:
            raise NotConfigured(
                f"the database has a newer schema ({revision}) than this program knows ({self.newest});"
                " start the newer program"
            )
