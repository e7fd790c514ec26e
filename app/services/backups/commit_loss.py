"""Loss of commits: whether the database lacks runs that were sent. Reads; ``lost_commits`` settles it."""

from sqlalchemy.orm import Session

from app.pipeline.sent_log_ids import read_highest
from app.settings.config import Config
from app.store.copies import whole_tables
from app.store.fires import log_ids

#: entry of the change history about a settled database
ACTION = "node.settled"


def is_behind(session: Session, highest_id: int) -> bool:
    """Whether the database would give the id of a run that was sent again."""
    return whole_tables.last_log_id(session.connection()) < highest_id


def known_as_sent(session: Session, config: Config) -> int:
    """Return the highest id of this database that a node with this home has sent; 0: unknown."""
    identity = log_ids.find_identity(session)
    return read_highest(config.home, identity) if identity else 0
