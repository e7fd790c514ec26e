"""Keys of the fires of triggers: ``manual:<due ms>-<32 hex digits>``, perhaps with ``@<id of the request>``.

``once:`` instead of ``manual:``: planned for an instant to come. ``backfill:<backfill>:<logical ms>``: of an
instant of a backfill. The fires of a broadcast have ``:<shard>`` at the end. The id of a trigger is
``<job id>.<due ms>.<32 hex digits>``; its number leads to its runs.
"""

import re
import uuid
from hashlib import sha256
from typing import NamedTuple

from app.clock import Millis

MANUAL, ONCE, BACKFILL = "manual", "once", "backfill"
#: digits of a token that make its number: 60 bits, as the column is signed
NUMBER_DIGITS = 15
_ID = re.compile(r"([0-9]{1,10})\.([0-9]{1,15})\.([0-9a-f]{32})")
_NUMBER = re.compile(rf"[0-9a-f]{{{NUMBER_DIGITS}}}")
_IN_KEY = re.compile(rf"(?:{MANUAL}|{ONCE}):([0-9]{{1,15}})-([0-9a-f]{{32}})(?:@[^:]+)?(?::[0-9]+)?")
_OF_BACKFILL = re.compile(rf"({BACKFILL}:[0-9]{{1,18}}(?:-[0-9]{{1,9}})?:([0-9]{{1,15}}))(?::[0-9]+)?")


class Trigger(NamedTuple):
    """A trigger of a job by a user or program."""

    job_id: int
    #: when it was due
    due_ms: Millis
    #: 32 hex digits
    token: str

    @property
    def number(self) -> int:
        """The `trigger_key` of its runs."""
        return int(self.token[:NUMBER_DIGITS], 16)

    @property
    def id(self) -> str:
        """The text that names it."""
        return f"{self.job_id}.{self.due_ms}.{self.token}"


def new_trigger(job_id: int, due_ms: Millis) -> Trigger:
    """Return a trigger that is unlike all others."""
    return Trigger(job_id, due_ms, uuid.uuid4().hex)


def key_of(trigger: Trigger, *, is_planned: bool, request: str) -> str:
    """Return the key of its fire; ``request``: id of the request, empty without one."""
    kind = ONCE if is_planned else MANUAL
    return f"{kind}:{trigger.due_ms}-{trigger.token}" + (f"@{request}" if request else "")


def backfill_key(backfill_id: int, logical_ms: Millis, attempt: int = 1) -> str:
    """Return the key of the fire of an instant of a backfill, in one of its attempts."""
    suffix = f"-{attempt}" if attempt > 1 else ""
    return f"{BACKFILL}:{backfill_id}{suffix}:{logical_ms}"


def trigger_of(job_id: int, fire_key: str) -> Trigger | None:
    """Return the trigger a fire of this job came from; None: from none.

    That of an instant of a backfill is made from its key.
    """
    if fire_key.startswith(BACKFILL):
        of_backfill = _OF_BACKFILL.fullmatch(fire_key)
        if of_backfill is None:
            return None
        return Trigger(job_id, int(of_backfill[2]), sha256(of_backfill[1].encode()).hexdigest()[:32])
    match = _IN_KEY.fullmatch(fire_key) if fire_key.startswith((MANUAL, ONCE)) else None
    return Trigger(job_id, int(match[1]), match[2]) if match is not None else None


def parse_id(text: str) -> Trigger | None:
    """Return the trigger an id names, such as ``"7.1795420800000.9f86d081884c7d659a2feaa0c55ad015"``."""
    match = _ID.fullmatch(text)
    return Trigger(int(match[1]), int(match[2]), match[3]) if match is not None else None


def number_text(number: int) -> str:
    """Return the number of a trigger as programs have it, such as ``"9f86d081884c7d6"``.

    It is the beginning of the token in the id of the trigger; as a number it would lose digits in JavaScript.
    """
    return f"{number:0{NUMBER_DIGITS}x}"


def parse_number(text: str) -> int | None:
    """Return the number of a trigger in its text, or in the whole id of the trigger; None: in neither."""
    if (trigger := parse_id(text)) is not None:
        return trigger.number
    return int(text, 16) if _NUMBER.fullmatch(text) is not None else None
