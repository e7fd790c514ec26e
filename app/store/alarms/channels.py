"""Statements on `xxl_job_channel` and `xxl_job_channel_scope`: alarm channels and their scopes."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, Text, and_, delete, func, or_, select, type_coerce, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk, deletion
from app.database.sql.in_list import among
from app.models.channel import AlarmChannel, ChannelScope
from app.models.job import Job
from app.store.pickers.overview import GroupIds

_OF_GROUP, _OF_JOB = (
    select(ChannelScope.id).where(among(column)) for column in (ChannelScope.group_id, ChannelScope.job_id)
)


@dataclass(frozen=True, slots=True)
class ScopedChannel:
    """A channel, and the groups and jobs it is for."""

    channel: AlarmChannel
    group_ids: set[int] = field(default_factory=set)
    job_ids: set[int] = field(default_factory=set)

    def covers(self, group_id: int, job_id: int = 0) -> bool:
        """Whether it gets the alarms of a job; without a job, those of every job of the group."""
        return bool(self.channel.for_all) or group_id in self.group_ids or job_id in self.job_ids


def list_channels(session: Session) -> list[ScopedChannel]:
    """Return all channels by name; there are few."""
    query = select(AlarmChannel, ChannelScope).outerjoin(
        ChannelScope, ChannelScope.channel_id == AlarmChannel.id
    )
    return _with_scopes(session.execute(query.order_by(func.lower(AlarmChannel.name), AlarmChannel.id)).all())


def find_for(
    session: Session, *, group_ids: Collection[int], job_ids: Collection[int] = ()
) -> list[ScopedChannel]:
    """Return the channels for all jobs, for one of these groups or for one of these jobs, by id.

    Of their groups and jobs only these are returned.
    """
    is_scope = or_(
        ChannelScope.group_id.in_([group_id for group_id in group_ids if group_id]),
        ChannelScope.job_id.in_([job_id for job_id in job_ids if job_id]),
    )
    query = (
        select(AlarmChannel, ChannelScope)
        .outerjoin(ChannelScope, and_(ChannelScope.channel_id == AlarmChannel.id, is_scope))
        .where(or_(AlarmChannel.for_all == 1, ChannelScope.id.is_not(None)))
        .order_by(AlarmChannel.id)
    )
    return _with_scopes(session.execute(query).all())


def find_channel(session: Session, channel_id: int) -> ScopedChannel | None:
    """Return a channel, or None."""
    query = select(AlarmChannel, ChannelScope).outerjoin(
        ChannelScope, ChannelScope.channel_id == AlarmChannel.id
    )
    return next(iter(_with_scopes(session.execute(query.where(AlarmChannel.id == channel_id)).all())), None)


def visible_to(session: Session, rows: Sequence[ScopedChannel], group_ids: GroupIds) -> list[ScopedChannel]:
    """Return the channels that get alarms of jobs in these groups (None: in any)."""
    if group_ids is None:
        return list(rows)
    job_ids = {job_id for row in rows for job_id in row.job_ids}
    of_groups = select(Job.id).where(Job.id.in_(job_ids), Job.job_group.in_(list(group_ids)))
    visible_jobs = set(session.scalars(of_groups)) if job_ids else set()
    return [
        row
        for row in rows
        if group_ids and (row.channel.for_all or row.group_ids & set(group_ids) or row.job_ids & visible_jobs)
    ]


def has_channel(session: Session, name: str, group_ids: GroupIds) -> bool:
    """Whether a channel of this name, whose case counts, gets alarms of jobs in these groups (None: in any).

    The name is not sent: it may have characters that the database refuses.
    """
    rows = [row for row in list_channels(session) if row.channel.name == name]
    return bool(visible_to(session, rows, group_ids))


def lock_channels(session: Session) -> list[AlarmChannel]:
    """Lock all channels, so that their number and names can be checked."""
    return list(session.scalars(select(AlarmChannel).order_by(AlarmChannel.id).with_for_update()))


def take_daily(
    session: Session, *, day: str, now_ms: Millis, lease_ms: Millis
) -> list[tuple[ScopedChannel, int]]:
    """Take the channels whose message about a day is due; return each with the number of the attempt."""
    is_due = (
        (AlarmChannel.daily == 1) & (AlarmChannel.daily_day < day) & (AlarmChannel.daily_next_ms <= now_ms)
    )
    if session.scalar(select(AlarmChannel.id).where(is_due).limit(1)) is None:
        return []
    query = select(AlarmChannel).where(is_due).order_by(AlarmChannel.id)
    channels = list(session.scalars(query.with_for_update(skip_locked=True)))
    for channel in channels:
        channel.daily_next_ms = now_ms + lease_ms
        channel.daily_attempts += 1
    session.flush()
    scopes = {row.channel.id: row for row in list_channels(session)}
    return [(scopes[channel.id], channel.daily_attempts) for channel in channels]


def end_daily(session: Session, channel_id: int, *, day: str) -> None:
    """Store that a channel has the message about a day, or that it was given up."""
    values = {"daily_day": day, "daily_attempts": 0, "daily_next_ms": 0}
    session.execute(update(AlarmChannel).where(AlarmChannel.id == channel_id).values(**values))


def put_off_daily(session: Session, channel_id: int, *, next_ms: Millis, counts: bool) -> None:
    """Store when the message is tried again; an attempt that does not count is taken back."""
    values = {
        "daily_next_ms": next_ms,
        "daily_attempts": AlarmChannel.daily_attempts - (0 if counts else 1),
    }
    session.execute(update(AlarmChannel).where(AlarmChannel.id == channel_id).values(**values))


def replace_scopes(
    session: Session, channel_id: int, *, group_ids: Sequence[int], job_ids: Sequence[int]
) -> None:
    """Set the groups and jobs of a channel."""
    session.execute(delete(ChannelScope).where(ChannelScope.channel_id == channel_id))
    rows = [{"channel_id": channel_id, "group_id": scope_id, "job_id": 0} for scope_id in group_ids]
    rows += [{"channel_id": channel_id, "group_id": 0, "job_id": scope_id} for scope_id in job_ids]
    bulk.insert_many(session, ChannelScope, rows)


def delete_channel(session: Session, channel_id: int) -> None:
    """Delete a channel and its scopes."""
    session.execute(delete(ChannelScope).where(ChannelScope.channel_id == channel_id))
    session.execute(delete(AlarmChannel).where(AlarmChannel.id == channel_id))


def forget(session: Session, *, group_ids: Sequence[int] = (), job_ids: Sequence[int] = ()) -> None:
    """Remove deleted groups and jobs from the channels that are for them."""
    # Rows are deleted by id: the table has no index on groups or jobs, and a delete that reads all rows would
    # lock them.
    for statement, ids in ((_OF_GROUP, group_ids), (_OF_JOB, job_ids)):
        rows = bulk.read_among(session, statement, ids) if ids else ()
        deletion.by_values(session, ChannelScope, "id", [row[0] for row in rows])


def find_stored_settings(session: Session) -> dict[str, str]:
    """Return name -> settings as stored, sealed."""
    rows = session.execute(select(AlarmChannel.name, type_coerce(AlarmChannel.settings, Text)))
    return {row[0]: row[1] for row in rows}


def _with_scopes(rows: Iterable[Row[Any]]) -> list[ScopedChannel]:
    channels: dict[int, ScopedChannel] = {}
    for channel, scope in rows:
        scoped_channel = channels.setdefault(channel.id, ScopedChannel(channel))
        if scope is not None and scope.group_id:
            scoped_channel.group_ids.add(scope.group_id)
        if scope is not None and scope.job_id:
            scoped_channel.job_ids.add(scope.job_id)
    return list(channels.values())
