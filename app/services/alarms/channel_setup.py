"""Alarm channels of the console: list, add, change, delete. Administrators only."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, require_admin
from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.domain.alarms.channel_settings import Settings, check_settings
from app.domain.completeness.days import latest_report_day
from app.domain.text.fingerprints import require_unchanged
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import required_text
from app.domain.text.texts import N_, fold
from app.errors import Conflict, InvalidInput, NotFound
from app.models.base import zone_name
from app.models.channel import AlarmChannel
from app.services.alarms.targets import settings_of
from app.services.auditing import audit
from app.store.alarms import channels
from app.store.alarms.channels import ScopedChannel
from app.store.executors import listing as group_lists
from app.store.jobs import scheduling as jobs

#: most channels, longest name, most groups and most jobs of a channel
CHANNELS_MAX, NAME_MAX, SCOPES_MAX = 100, 64, 200
MISSING = N_("There is no such alarm channel")


@dataclass(frozen=True, slots=True)
class ChannelDraft:
    """A channel as entered in the form; of a changed one, empty secrets keep their stored values."""

    name: str
    kind: ChannelKind
    settings: Settings
    for_all: bool = True
    group_ids: Sequence[int] = ()
    job_ids: Sequence[int] = ()
    #: it gets a message each morning
    daily: bool = False
    #: it may have neither groups nor jobs, as after a deletion of its last job
    may_be_empty: bool = False
    #: names of optional secrets to remove
    dropped: Collection[str] = field(default=frozenset())
    #: errors of inputs that could not be read; refused together with the others
    unreadable: tuple[InvalidInput, ...] = ()
    #: fingerprint of the state that was edited; empty: not compared
    loaded: str = ""


def list_channels(session: Session, *, actor: Actor) -> list[ScopedChannel]:
    """Return all channels by name."""
    require_admin(actor)
    return channels.list_channels(session)


def get_channel(session: Session, channel_id: int, *, actor: Actor) -> ScopedChannel:
    """Return a channel; raises NotFound."""
    require_admin(actor)
    row = channels.find_channel(session, channel_id)
    if row is None:
        raise NotFound(MISSING)
    return row


def free_name(session: Session, title: str) -> str:
    """Return a name for a new channel that no other one has: ``Slack``, ``Slack 2``."""
    existing_names = {fold(row.channel.name) for row in channels.list_channels(session)}
    names = [title, *(f"{title} {number}" for number in range(2, CHANNELS_MAX + 2))]
    return next((name for name in names if fold(name) not in existing_names), title)


def add_channel(session: Session, draft: ChannelDraft, *, actor: Actor, now_ms: Millis) -> int:
    """Store a new channel; return its id. Raises InvalidInput with the errors of all fields."""
    require_admin(actor)
    others = channels.lock_channels(session)
    if len(others) >= CHANNELS_MAX:
        raise Conflict(N_("There are %(limit)s alarm channels already; delete one first", limit=CHANNELS_MAX))
    columns = _check(session, draft, others, {})
    channel = AlarmChannel(updated_ms=now_ms, kind=draft.kind.value, **_column_values(columns))
    channel.daily_day = latest_report_day(now_ms, ZoneInfo(zone_name())).isoformat()
    session.add(channel)
    _flush(session, channel.name)
    _set_scopes(session, channel.id, draft)
    changes = audit.difference({}, columns | {"kind": draft.kind.value})
    target = ("channel", channel.id)
    audit.record(session, "channel.add", actor=actor, now_ms=now_ms, target=target, changes=changes)
    return channel.id


def update_channel(
    session: Session, channel_id: int, draft: ChannelDraft, *, actor: Actor, now_ms: Millis
) -> None:
    """Change a channel; its kind stays. Raises NotFound, InvalidInput and ChangedMeanwhile."""
    require_admin(actor)
    others = channels.lock_channels(session)
    row = get_channel(session, channel_id, actor=actor)
    require_unchanged(draft.loaded, state_of(row))
    channel = row.channel
    before = _columns(channel.name, channel.settings, row)
    columns = _check(
        session, draft, [other for other in others if other.id != channel_id], settings_of(channel)
    )
    if draft.daily and not channel.daily:
        channel.daily_day = latest_report_day(now_ms, ZoneInfo(zone_name())).isoformat()
    for name, value in _column_values(columns).items():
        setattr(channel, name, value)
    channel.updated_ms = now_ms
    _flush(session, channel.name)
    _set_scopes(session, channel_id, draft)
    changes = {"name": channel.name} | audit.difference(before, columns)
    target = ("channel", channel_id)
    audit.record(session, "channel.update", actor=actor, now_ms=now_ms, target=target, changes=changes)


def state_of(row: ScopedChannel) -> dict[str, object]:
    """Return what the form of a channel shows: all but its secrets."""
    kind, settings = row.channel.kind, settings_of(row.channel)
    visible_settings = {
        setting.name: settings.get(setting.name, "")
        for setting in KINDS[ChannelKind(kind)].fields
        if not setting.is_secret
    }
    return _columns(row.channel.name, "", row) | {"settings": visible_settings}


def remove_channel(session: Session, channel_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Delete a channel. Raises NotFound."""
    channel = get_channel(session, channel_id, actor=actor).channel
    changes, target = {"name": channel.name, "kind": channel.kind}, ("channel", channel_id)
    channels.delete_channel(session, channel_id)
    session.expunge(channel)
    audit.record(session, "channel.remove", actor=actor, now_ms=now_ms, target=target, changes=changes)


def check_channel(
    draft: ChannelDraft, others: Collection[str], former_settings: Settings
) -> tuple[str, dict[str, str]]:
    """Return name and settings as they are stored; raises InvalidInput with all errors.

    ``others`` are the names of the other channels, ``former_settings`` those before the change.
    """
    errors, name, settings = InputErrors(draft.unreadable), "", dict[str, str]()
    with errors:
        name = _name(draft.name, others)
    with errors:
        settings = check_settings(draft.kind, _with_stored_secrets(draft, former_settings))
    with errors:
        _check_scopes(draft)
    errors.raise_all()
    return name, settings


def _check(
    session: Session, draft: ChannelDraft, others: Sequence[AlarmChannel], former_settings: Settings
) -> dict[str, object]:
    """Return the columns of a draft; ``former_settings`` are those before the change."""
    errors, name, settings = InputErrors(), "", dict[str, str]()
    with errors:
        name, settings = check_channel(draft, [other.name for other in others], former_settings)
    with errors:
        _check_existing(session, draft)
    errors.raise_all()
    text = json.dumps(settings, ensure_ascii=False)
    return _columns(name, text, draft)


def _name(text: str, others: Collection[str]) -> str:
    name = " ".join(required_text("name", text, NAME_MAX, N_("Enter a name")).split())
    if fold(name) in set(map(fold, others)):
        raise _name_conflict(name)
    return name


def _name_conflict(name: str) -> InvalidInput:
    return InvalidInput("name", N_('"%(name)s" is the name of another alarm channel', name=name))


def _flush(session: Session, name: str) -> None:
    """Write a channel; MySQL and MariaDB take names that differ in an accent only for the same."""
    try:
        session.flush()
    except IntegrityError as exc:
        raise _name_conflict(name) from exc


def _with_stored_secrets(draft: ChannelDraft, former_settings: Settings) -> Settings:
    """Return the settings of a draft, with the stored secrets where it has empty ones."""
    settings = dict(draft.settings)
    for name in (setting.name for setting in KINDS[draft.kind].fields if setting.is_secret):
        is_empty = not settings.get(name, "").strip()
        if is_empty and name in former_settings and name not in draft.dropped:
            settings[name] = former_settings[name]
            is_moved = settings.get("server", "").strip().rstrip("/") != former_settings.get("server", "")
            if former_settings[name] and is_moved:
                raise InvalidInput(name, N_("Enter it again, because the server has changed"))
    return settings


def _check_scopes(draft: ChannelDraft) -> None:
    if draft.for_all:
        if draft.group_ids or draft.job_ids:
            raise InvalidInput("for_all", N_("A channel for all jobs names neither groups nor jobs"))
        return
    errors = InputErrors()
    with errors:
        is_empty = not draft.group_ids and not draft.job_ids
        if is_empty and not draft.may_be_empty and not draft.unreadable:
            raise InvalidInput("groups", N_("Choose at least one executor or job, or all jobs"))
    for name, ids in (("groups", draft.group_ids), ("jobs", draft.job_ids)):
        with errors:
            if len(ids) > SCOPES_MAX:
                raise InvalidInput(name, N_("At most %(limit)s can be chosen", limit=SCOPES_MAX))
    errors.raise_all()


def _check_existing(session: Session, draft: ChannelDraft) -> None:
    if draft.for_all:
        return
    errors = InputErrors()
    with errors:
        _check_ids("groups", draft.group_ids, group_lists.existing_ids(session, draft.group_ids))
    with errors:
        _check_ids("jobs", draft.job_ids, jobs.find_names(session, draft.job_ids).keys())
    errors.raise_all()


def _check_ids(name: str, object_ids: Sequence[int], existing: Collection[int]) -> None:
    missing = [str(object_id) for object_id in object_ids if object_id not in existing]
    if missing:
        raise InvalidInput(name, N_("Not found: id %(ids)s", ids=", ".join(missing)))


def _columns(name: str, settings: str, of: ChannelDraft | ScopedChannel) -> dict[str, object]:
    source = of.channel if isinstance(of, ScopedChannel) else of
    for_all = bool(source.for_all)
    return {
        "name": name,
        "settings": settings,
        "for_all": for_all,
        "groups": [] if for_all else sorted(of.group_ids),
        "jobs": [] if for_all else sorted(of.job_ids),
        "daily": bool(source.daily),
    }


def _column_values(columns: Mapping[str, object]) -> dict[str, object]:
    return {
        "name": columns["name"],
        "settings": columns["settings"],
        "for_all": int(bool(columns["for_all"])),
        "daily": int(bool(columns["daily"])),
    }


def _set_scopes(session: Session, channel_id: int, draft: ChannelDraft) -> None:
    scopes = ((), ()) if draft.for_all else (draft.group_ids, draft.job_ids)
    group_ids, job_ids = (sorted(set(ids)) for ids in scopes)
    channels.replace_scopes(session, channel_id, group_ids=group_ids, job_ids=job_ids)
