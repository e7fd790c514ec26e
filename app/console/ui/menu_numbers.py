"""Numbers in the menu of every page."""

from app.console.web.current import current_actor
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.services.promises.lists import count_open
from app.services.report.failing import find_failing_lately, known_number


def failing_jobs() -> int:
    """Return how many of the jobs that the reader may see are failing; a few seconds old at most."""
    group_ids = current_actor().group_ids(Right.VIEW)
    number = known_number(group_ids)
    if number is None:
        with read_scope() as session:
            number = len(find_failing_lately(session, group_ids))
    return number


def open_incidents() -> int:
    """Return how many incidents that the reader may see are open; a few seconds old at most."""
    with read_scope() as session:
        return count_open(session, current_actor().group_ids(Right.VIEW))
