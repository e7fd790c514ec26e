"""Rows of ours whose job, group or user is gone: a Java admin on the same database deletes these, and knows nothing of our tables."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.db import affected
from app.models.base import Base
from app.models.drain import Drain
from app.models.favourite import Favourite
from app.models.group import Group
from app.models.job import Job
from app.models.mute import Mute
from app.models.report import GroupDay
from app.models.right import Right
from app.models.saved_view import SavedView
from app.models.skip import Skip
from app.models.start_page import StartPage
from app.models.tag import JobTag
from app.models.user import User
from app.store import bulk

#: an owner that is nobody, such as of the row that says that a day has been counted
NOBODY = 0


class Belonging(NamedTuple):
    """A table of ours, and whose its rows are: the column that says so, and the table it leads to."""

    rows: type[Base]
    column: str
    owners: type[Base]


BELONGINGS = (
    Belonging(JobTag, "job_id", Job),
    Belonging(Favourite, "job_id", Job),
    Belonging(Skip, "job_id", Job),
    Belonging(Drain, "group_id", Group),
    Belonging(Right, "group_id", Group),
    Belonging(GroupDay, "job_group", Group),
    Belonging(Right, "user_id", User),
    Belonging(Favourite, "user_id", User),
    Belonging(SavedView, "user_id", User),
    Belonging(StartPage, "user_id", User),
)
#: these rows are not deleted but ended: what a mute holds back is told first
MUTES = (Belonging(Mute, "job_id", Job), Belonging(Mute, "group_id", Group))


def find_orphans(session: Session, belonging: Belonging, *, limit: int) -> list[int]:
    """Return the ids of rows whose owner is gone: one statement, and it locks nothing."""
    rows, owners = bulk.table_of(belonging.rows), bulk.table_of(belonging.owners)
    owner = rows.c[belonging.column]
    gone = ~select(owners.c.id).where(owners.c.id == owner).exists()
    query = select(rows.c.id).where(owner != NOBODY, gone)
    return list(session.scalars(query.order_by(rows.c.id).limit(limit)))


def delete_orphans(session: Session, belonging: Belonging, ids: Sequence[int]) -> int:
    """Delete these rows; return how many there were."""
    rows = bulk.table_of(belonging.rows)
    return affected(session, delete(rows).where(rows.c.id.in_(ids)))
