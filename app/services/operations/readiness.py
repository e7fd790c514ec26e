"""Readiness for monitors and load balancers: whether jobs are being fired.

A console is ready if its database answers, has the schema of this program, a scheduler of any node has
completed a scan within SCAN_MAX_MS, and no fire waits without a reason.
"""

from dataclasses import dataclass
from functools import partial

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.models.node import SCAN_MAX_MS
from app.services.installation.schema import newest_revision
from app.services.operations.bounded_reads import BoundedReader
from app.services.operations.unclaimed_fires import oldest_unexplained
from app.store.copies import schema
from app.store.nodes import health, nodes


@dataclass(frozen=True, slots=True)
class Problem:
    """What is not ready, in words without names or addresses: it is read without a login."""

    #: ``database``, ``schema``, ``scheduler`` or ``runs``
    part: str
    text: str
    #: None: not known
    since_ms: Millis | None


class Readiness:
    """Checks readiness; keeps since when database or schema are not ready.

    A schema that was right once stays so: during a rolling upgrade the nodes of the earlier version go on.
    """

    def __init__(self) -> None:
        self._since: dict[str, Millis] = {}
        self._had_schema = False
        self._reader = BoundedReader()

    def is_database_up(self) -> bool:
        """Return whether the database answers; opens its own reading transaction."""
        try:
            self._reader.read(health.ping)
        except SQLAlchemyError:
            return False
        return True

    def find_problem(self, *, now_ms: Millis) -> Problem | None:
        """Return the first problem, None if there is none; opens its own reading transaction."""
        try:
            problem = self._reader.read(partial(self._find_problem, now_ms=now_ms))
        except SQLAlchemyError:
            problem = Problem("database", "the database does not answer", None)
        if problem is None or problem.part in ("scheduler", "runs"):
            self._since.clear()
            return problem
        since_ms = self._since.setdefault(problem.part, now_ms)
        return Problem(problem.part, problem.text, since_ms)

    def _find_problem(self, session: Session, now_ms: Millis) -> Problem | None:
        problem = None if self._had_schema else _find_wrong_schema(session)
        self._had_schema = problem is None
        return problem or find_silence(session, now_ms=now_ms) or find_unclaimed(session, now_ms=now_ms)


def _find_wrong_schema(session: Session) -> Problem | None:
    revision, newest = schema.find_revision(session.connection()), newest_revision()
    if revision == newest:
        return None
    has = f"has the schema {revision}" if revision else "has no tables of this program"
    return Problem("schema", f"the database {has}, but {newest} is needed", None)


def find_silence(session: Session, *, now_ms: Millis) -> Problem | None:
    """Return that no scheduler scans, None if one does."""
    scanned_ms = nodes.last_scan_ms(session, now_ms=now_ms)
    age_ms = now_ms - scanned_ms
    if age_ms <= SCAN_MAX_MS:
        return None
    if not scanned_ms:
        return Problem("scheduler", "no scheduler has scanned yet; are the workers running?", None)
    return Problem("scheduler", f"no scheduler has scanned for {age_ms // 1000} s", scanned_ms)


def find_unclaimed(session: Session, *, now_ms: Millis) -> Problem | None:
    """Return that fires are due and not claimed although nothing explains it, None if there are none."""
    count, oldest_ms = oldest_unexplained(session, now_ms=now_ms)
    if oldest_ms is None:
        return None
    text = f"{count}, the oldest for {(now_ms - oldest_ms) // SECOND_MS} s"
    return Problem("runs", f"due and not sent, and nothing explains it: {text}", oldest_ms)
