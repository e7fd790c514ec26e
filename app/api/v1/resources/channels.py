"""API: alarm channels."""

from collections.abc import Sequence

from app.api.v1.cursors import cut, read_id_cursor
from app.api.v1.endpoint import ADMIN, Call, Made, Resource
from app.api.v1.schemas.alarms import TargetOut
from app.api.v1.schemas.base import Listed, ListQuery
from app.api.v1.schemas.channels import (
    BLANKED,
    ChannelIn,
    ChannelOut,
    ChannelPatch,
    ChannelSettings,
    ChannelTestOut,
)
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
    found = channel_setup.list_channels(call.session, actor=call.actor)
    rest = sorted((each for each in found if each.channel.id > after_id), key=lambda each: each.channel.id)
    shown, next_cursor = cut(rest, limit, lambda each: (each.channel.id,))
    return Listed[ChannelOut](items=[_answer(each) for each in shown], next_cursor=next_cursor)


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
        _given(kind, body.settings),
        *_scopes(body, None),
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
    found = channel_setup.get_channel(call.session, channel_id, actor=call.actor)
    if found.channel.kind not in KINDS:
        raise NotFound(channel_setup.MISSING)
    kind, given = ChannelKind(found.channel.kind), body.model_fields_set
    entered = _given(kind, body.settings)
    stored = settings_of(found.channel)
    shown = {each.name: stored.get(each.name, "") for each in KINDS[kind].fields if not each.is_secret}
    draft = ChannelDraft(
        body.name if "name" in given else found.channel.name,
        kind,
        shown | entered,
        *_scopes(body, found),
        dropped={name for name, value in entered.items() if not value.strip()},
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
        results=[TargetOut(target=displayed(each.target), problem=each.problem or None) for each in results],
        unmailed=list(test.unmailed),
    )


def _scopes(
    body: ChannelIn | ChannelPatch, found: ScopedChannel | None
) -> tuple[bool, Sequence[int], Sequence[int]]:
    """Return whether a channel is for all jobs, its groups and its jobs: as given, otherwise as they are.

    Groups or jobs without ``for_all`` limit a channel for all jobs to them.
    """
    given, is_limited = body.model_fields_set, bool(body.group_ids or body.job_ids)
    was_for_all = found is None or bool(found.channel.for_all)
    for_all = body.for_all if "for_all" in given else was_for_all and not is_limited
    if for_all or found is None:
        return for_all, body.group_ids, body.job_ids
    group_ids = body.group_ids if "group_ids" in given else sorted(found.group_ids)
    return False, group_ids, body.job_ids if "job_ids" in given else sorted(found.job_ids)


def _given(kind: ChannelKind, settings: ChannelSettings) -> dict[str, str]:
    """Return the settings that are given: null as an empty text, and no blanked secrets.

    Raises InvalidInput for settings of other kinds.
    """
    known, errors = {each.name for each in KINDS[kind].fields}, InputErrors()
    given = {name: getattr(settings, name) or "" for name in _SETTINGS if name in settings.model_fields_set}
    for name, value in given.items():
        with errors:
            if value and name not in known:
                raise InvalidInput(name, f"a channel of the kind {kind.value} has no {name}")
    errors.raise_all()
    return {name: value for name, value in given.items() if name in known and value != BLANKED}


def _answer(found: ScopedChannel) -> ChannelOut:
    channel = found.channel
    return ChannelOut(
        id=channel.id,
        name=channel.name,
        kind=channel.kind,
        settings=_shown(channel),
        for_all=bool(channel.for_all),
        group_ids=sorted(found.group_ids),
        job_ids=sorted(found.job_ids),
        updated_at=channel.updated_ms,
    )


def _shown(channel: AlarmChannel) -> ChannelSettings:
    stored = settings_of(channel)
    fields = KINDS[ChannelKind(channel.kind)].fields if channel.kind in KINDS else ()
    kept = [each for each in fields if stored.get(each.name)]
    return ChannelSettings(**{each.name: BLANKED if each.is_secret else stored[each.name] for each in kept})
