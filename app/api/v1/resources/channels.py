"""API: alarm channels."""

from collections.abc import Sequence

from app.api.v1.cursors import cut, read_id_cursor
from app.api.v1.endpoint import ADMIN, Call, Made, Resource
from app.api.v1.schemas.alarms import (
    BLANKED,
    ChannelIn,
    ChannelOut,
    ChannelPatch,
    ChannelSettings,
    ChannelTestOut,
    TargetOut,
)
from app.api.v1.schemas.base import Listed, ListQuery
from app.database.engine import read_scope
from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.domain.text.input_errors import InputErrors
from app.errors import InvalidInput, NotFound
from app.models.channel import AlarmChannel
from app.services.alarms import channel_setup, test_alarms
from app.services.alarms.channel_setup import ChannelDraft
from app.services.alarms.targets import displayed, settings_of
from app.store.alarms import channels
from app.store.alarms.channels import ScopedChannel

_SETTINGS = tuple(ChannelSettings.model_fields)
resource = Resource(
    "channels",
    "Alarm channels: where alarms are sent.",
    {"groups": "group_ids", "jobs": "job_ids", **{name: f"settings.{name}" for name in _SETTINGS}},
)


@resource.get("/channels", answer=Listed[ChannelOut], query=ListQuery, right=ADMIN)
def list_channels(call: Call) -> Listed[ChannelOut]:
    """List the alarm channels, oldest first."""
    after_id, limit = read_id_cursor(call.query.cursor) or 0, call.query.limit
    rows = channel_setup.list_channels(call.session, actor=call.actor)
    later_rows = sorted((row for row in rows if row.channel.id > after_id), key=lambda row: row.channel.id)
    page, next_cursor = cut(later_rows, limit, lambda row: (row.channel.id,))
    return Listed[ChannelOut](items=[_answer(row) for row in page], next_cursor=next_cursor)


@resource.get("/channels/<int:channel_id>", answer=ChannelOut, right=ADMIN, etag=True)
def get_channel(call: Call, channel_id: int) -> ChannelOut:
    """Return an alarm channel."""
    return _answer(channel_setup.get_channel(call.session, channel_id, actor=call.actor))


@resource.post("/channels", body=ChannelIn, answer=ChannelOut, status=201, right=ADMIN)
def add_channel(call: Call, body: ChannelIn) -> Made:
    """Add an alarm channel."""
    kind = ChannelKind(body.kind)
    draft = ChannelDraft(
        body.name,
        kind,
        _settings_in(kind, body.settings),
        *_scopes(body, None),
        daily=body.daily,
    )
    channel_id = channel_setup.add_channel(call.session, draft, actor=call.actor, now_ms=call.now_ms)
    return Made(get_channel(call, channel_id), f"/channels/{channel_id}")


@resource.patch(
    "/channels/<int:channel_id>",
    body=ChannelPatch,
    answer=ChannelOut,
    right=ADMIN,
    etag=True,
    lock=lambda session, channel_id: channels.lock_channels(session),
)
def change_channel(call: Call, channel_id: int, body: ChannelPatch) -> ChannelOut:
    """Change an alarm channel."""
    channels.lock_channels(call.session)
    current = channel_setup.get_channel(call.session, channel_id, actor=call.actor)
    if current.channel.kind not in KINDS:
        raise NotFound(channel_setup.MISSING)
    kind, fields_set = ChannelKind(current.channel.kind), body.model_fields_set
    changes = _settings_in(kind, body.settings)
    settings = settings_of(current.channel)
    visible_settings = {
        field.name: settings.get(field.name, "") for field in KINDS[kind].fields if not field.is_secret
    }
    draft = ChannelDraft(
        body.name if "name" in fields_set else current.channel.name,
        kind,
        visible_settings | changes,
        *_scopes(body, current),
        daily=body.daily if "daily" in fields_set else bool(current.channel.daily),
        dropped={name for name, value in changes.items() if not value.strip()},
    )
    channel_setup.update_channel(call.session, channel_id, draft, actor=call.actor, now_ms=call.now_ms)
    return get_channel(call, channel_id)


@resource.delete("/channels/<int:channel_id>", right=ADMIN)
def delete_channel(call: Call, channel_id: int) -> None:
    """Delete an alarm channel."""
    channel_setup.remove_channel(call.session, channel_id, actor=call.actor, now_ms=call.now_ms)


@resource.post("/channels/<int:channel_id>/test", answer=ChannelTestOut, right=ADMIN, transaction=False)
def send_test(call: Call, channel_id: int) -> ChannelTestOut:
    """Send a message that is marked as a test; a dry run only returns where it goes."""
    with read_scope() as session:
        test = test_alarms.channel_to_test(session, channel_id, actor=call.actor, config=call.config)
    results = []
    if not call.dry_run:
        with call.executors.permit():
            results = test_alarms.send_test(test, actor=call.actor, config=call.config, now_ms=call.now_ms)
    return ChannelTestOut(
        targets=[displayed(name) for name in test.targets],
        results=[
            TargetOut(target=displayed(result.target), problem=result.problem or None) for result in results
        ],
        unmailed=list(test.unmailed),
    )


def _scopes(
    body: ChannelIn | ChannelPatch, current: ScopedChannel | None
) -> tuple[bool, Sequence[int], Sequence[int]]:
    """Return whether a channel is for all jobs, its groups and its jobs, from the body or else unchanged.

    Groups or jobs without ``for_all`` limit a channel for all jobs to them.
    """
    fields_set, is_limited = body.model_fields_set, bool(body.group_ids or body.job_ids)
    was_for_all = current is None or bool(current.channel.for_all)
    for_all = body.for_all if "for_all" in fields_set else was_for_all and not is_limited
    if for_all or current is None:
        return for_all, body.group_ids, body.job_ids
    group_ids = body.group_ids if "group_ids" in fields_set else sorted(current.group_ids)
    return False, group_ids, body.job_ids if "job_ids" in fields_set else sorted(current.job_ids)


def _settings_in(kind: ChannelKind, settings: ChannelSettings) -> dict[str, str]:
    """Return the settings in a body: null as an empty text, and no blanked secrets.

    Raises InvalidInput for settings of other kinds.
    """
    names, errors = {field.name for field in KINDS[kind].fields}, InputErrors()
    values = {name: getattr(settings, name) or "" for name in _SETTINGS if name in settings.model_fields_set}
    for name, value in values.items():
        with errors:
            if value and name not in names:
                raise InvalidInput(name, f"a channel of the kind {kind.value} has no {name}")
    errors.raise_all()
    return {name: value for name, value in values.items() if name in names and value != BLANKED}


def _answer(scoped_channel: ScopedChannel) -> ChannelOut:
    channel = scoped_channel.channel
    return ChannelOut(
        id=channel.id,
        name=channel.name,
        kind=channel.kind,
        settings=_settings_out(channel),
        for_all=bool(channel.for_all),
        group_ids=sorted(scoped_channel.group_ids),
        job_ids=sorted(scoped_channel.job_ids),
        daily=bool(channel.daily),
        updated_at=channel.updated_ms,
    )


def _settings_out(channel: AlarmChannel) -> ChannelSettings:
    settings = settings_of(channel)
    fields = KINDS[ChannelKind(channel.kind)].fields if channel.kind in KINDS else ()
    fields_set = [field for field in fields if settings.get(field.name)]
    return ChannelSettings(
        **{field.name: BLANKED if field.is_secret else settings[field.name] for field in fields_set}
    )
