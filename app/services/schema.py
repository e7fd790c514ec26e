"""Schema versions: which the migrations of this program know."""

from functools import cache
from pathlib import Path

from alembic.script import ScriptDirectory

from app.errors import NotConfigured
from app.promoted import FILLING_REVISION, MOVED_REVISION

MIGRATIONS = Path(__file__).resolve().parent.parent.parent / "migrations"
#: stands for a revision while a restore is filling the database
RESTORING = "restoring"


@cache
def newest_revision() -> str:
    """Return the revision of the schema that this program needs; reads the migrations once."""
    return Revisions().newest


class Revisions:
    """Revisions of the migrations in a folder."""

    def __init__(self, scripts: ScriptDirectory | None = None) -> None:
        scripts = scripts or ScriptDirectory(str(MIGRATIONS))
        self.newest = scripts.get_current_head() or ""
        #: revision -> the one to start from, for those that were replaced by others
        self.replaced: dict[str, str] = {}
        self._known = set[str]()
        for script in scripts.walk_revisions():
            self._known.add(script.revision)
            replaced: tuple[str, ...] = getattr(script.module, "REPLACES", ())
            self.replaced |= dict.fromkeys(replaced, str(script.down_revision))  # adds what they lack
            self.replaced |= dict.fromkeys(replaced[-1:], script.revision)  # has the same schema

    def require_known(self, found: str | None) -> None:
        """Raise NotConfigured if an upgrade cannot start from this revision; None: from an empty database."""
        if found == RESTORING:
            raise NotConfigured(
                "the database is incomplete, because a restore was broken off;"
                " run the restore again, with --replace"
            )
        if found is not None and found.startswith(FILLING_REVISION):
            raise NotConfigured(
                "xxl promote is filling the database, or was broken off: the old database goes on;"
                " run xxl promote again (docs/promote.md)"
            )
        if found == MOVED_REVISION:
            raise NotConfigured("the database has moved to another one (docs/promote.md)")
        if found is not None and found not in self._known and found not in self.replaced:
            raise NotConfigured(
                f"the database has a newer schema ({found}) than this program knows ({self.newest});"
                " start the newer program"
            )
