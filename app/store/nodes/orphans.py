"""Orphans: rows of our own tables whose job, group or user a Java admin on the same database has deleted."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.database.rows import bulk
from app.models.api_token import ApiToken
from app.models.base import Base
from app.models.channel import ChannelScope
from app.models.code import JobVersion
from app.models.drain import Drain
from app.models.favourite import Favourite
from app.models.group import Group
from app.models.job import Job
from app.models.mute import Mute
from app.models.promise import JobPromise, PromiseCheck
from app.models.report import GroupDay
from app.models.right import Right
from app.models.round import After
from app.models.saved_view import SavedView
from app.models.skip import Skip
from app.models.start_page import StartPage
from app.models.tag import JobTag
from app.models.user import User
from app.models.variable import Variable

#: owner id of rows without an owner: a service token, the row that marks a day as counted, the group of a
#: channel's job, variables of the installation
NO_OWNER = 0


class Belonging(NamedTuple):
    """One of our own tables, the column with the id of the owner, and the owners' table."""

    rows: type[Base]
    column: str
    owners: type[Base]


BELONGINGS = (
    Belonging(JobTag, "job_id", Job),
    Belonging(JobVersion, "job_id", Job),
    Belonging(Favourite, "job_id", Job),
    Belonging(Skip, "job_id", Job),
    Belonging(After, "job_id", Job),
    Belonging(PromiseCheck, "job_id", Job),
    Belonging(JobPromise, "job_id", Job),
    Belonging(ChannelScope, "job_id", Job),
    Belonging(ChannelScope, "group_id", Group),
    Belonging(Drain, "group_id", Group),
    Belonging(Right, "group_id", Group),
    Belonging(Variable, "group_id", Group),
    Belonging(GroupDay, "job_group", Group),
    Belonging(Right, "user_id", User),
    Belonging(Favourite, "user_id", User),
    Belonging(SavedView, "user_id", User),
    Belonging(StartPage, "user_id", User),
    Belonging(ApiToken, "user_id", User),
)
#: these rows are not deleted but ended, so that the summary of the alarms they hold is sent first
MUTES = (Belonging(Mute, "job_id", Job), Belonging(Mute, "group_id", Group))


def find_orphans(session: Session, belonging: Belonging, *, limit: int) -> list[int]:
    """Return the ids of rows whose owner does not exist, by one statement without locks."""
    rows, owners = bulk.table_of(belonging.rows), bulk.table_of(belonging.owners)
    owner = rows.c[belonging.column]
    is_gone = ~select(owners.c.id).where(owners.c.id == owner).exists()
    query = select(rows.c.id).where(owner != NO_OWNER, is_gone)
    return list(session.scalars(query.order_by(rows.c.id).limit(limit)))


def delete_orphans(session: Session, belonging: Belonging, ids: Sequence[int]) -> int:
    """Delete these rows; return how many there were."""
    rows = bulk.table_of(belonging.rows)
    return affected(session, delete(rows).where(rows.c.id.in_(ids)))
