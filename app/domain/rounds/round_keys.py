"""Keys of rounds: which arrivals belong together.

``t:<ms>``: of a logical time; ``d:<yyyy-MM-dd>``: of a day; ``s:<id of the last decided round, else 0>``:
since that; ``c:<number>``: of a chain, whatever the kind.
"""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from app.clock import Millis
from app.domain.rounds.kinds import RoundKind

#: beginning of the keys of rounds since the last one
SINCE = "s:"
#: `chain` of a run that nothing follows by rounds
NONE_FOLLOWS = 0
#: `chain` of a run by hand that was asked for no logical time: it is in no round of one
FOR_NO_TIME = -1


def in_chain(chain: int | None) -> bool:
    """Whether a `chain` is the number of a trigger that asked for the chain."""
    return chain is not None and chain > 0


def round_key(kind: RoundKind, logical_ms: Millis, *, zone: str, chain: int | None) -> str:
    """Return the key of the round that a logical time belongs to; empty: since the last one.

    ``zone``: of the job that follows; ``chain``: that of the run (``in_chain``).
    """
    if chain is not None and chain > 0:
        return chain_key(chain)
    if kind is RoundKind.DAY:
        return f"d:{datetime.fromtimestamp(logical_ms / 1000, _zone(zone)):%Y-%m-%d}"
    return "" if kind is RoundKind.SINCE_LAST else f"t:{logical_ms}"


def _zone(name: str) -> tzinfo:
    """Return a zone; one that does not exist is UTC: no result of another job may fail because of it."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return UTC


def since_key(last_decided: int) -> str:
    """Return the key of the round since the last decided one; 0: the first."""
    return f"{SINCE}{last_decided}"


def chain_key(chain: int) -> str:
    """Return the key of the round of a job in a chain."""
    return f"c:{chain}"
