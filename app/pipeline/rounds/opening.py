"""Opening of rounds: the rows of new ones, and the locks of those that arrivals and instants belong to."""

from collections.abc import Callable, Collection

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import ScheduleType
from app.domain.rounds.round_keys import in_chain
from app.store.rounds import rounds
from app.store.rounds.following import FollowerRow
from app.store.rounds.rounds import RoundName, RoundRow


def is_gate(job: FollowerRow, chain: int | None) -> bool:
    """Whether the instants of a job's schedule wait for a round; they do not for that of a chain."""
    return job.schedule_type != ScheduleType.NONE and not in_chain(chain)


def new_round(
    name: RoundName,
    logical_ms: Millis,
    *,
    opened_ms: Millis,
    wait_ms: Millis,
    chain: int | None = None,
    is_looked_at: bool = False,
) -> bulk.Row:
    """Return the row of a round that is opened; ``is_looked_at``: by the monitor at once."""
    end_ms = opened_ms + wait_ms
    return {
        "job_id": name[0],
        "round_key": name[1],
        "logical_ms": logical_ms,
        "chain": chain,
        "opened_ms": opened_ms,
        "deadline_ms": end_ms,
        "due_ms": opened_ms if is_looked_at else end_ms,
    }


def lock_rounds(
    session: Session, names: Collection[RoundName], new_row: Callable[[RoundName], bulk.Row | None]
) -> dict[RoundName, RoundRow]:
    """Lock these rounds; those that do not exist are opened first, unless ``new_row`` has no row for them."""
    ids = rounds.find_ids(session, names)
    missing = {name: row for name in names if name not in ids and (row := new_row(name)) is not None}
    if missing:
        rounds.insert_rounds(session, list(missing.values()))
        ids |= rounds.find_ids(session, missing)
    name_by_id = {round_id: name for name, round_id in ids.items()}
    return {name_by_id[row.id]: row for row in rounds.lock_rounds(session, name_by_id).values()}
