"""Executor groups: list, add, change, remove. Addresses are checked more strictly than in XXL-JOB.

Source: XXL-JOB 2.4.1 (docs/reference/console.md, section 12).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, require_admin
from app.domain.alarms.alarm_urls import check_urls
from app.domain.archive.kinds import KEEPING
from app.domain.enums import AddressType
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.plain_values import checked_number, checked_value
from app.domain.jobs.structures import GROUP_STRUCTURES, structure_column
from app.domain.limits.rules import WITHOUT_JAVA
from app.domain.promises.rules import check_escalation
from app.domain.text.fingerprints import require_unchanged
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import limited_text, required_text
from app.domain.text.texts import N_, Text
from app.errors import Conflict, InvalidInput, NotFound
from app.executors.addresses import check_address
from app.models.group import Group
from app.pipeline.registration import listed_addresses
from app.services.auditing import audit
from app.services.executors.group_list import (
    MISSING,
    get_group,
    list_after,
    list_groups,
    visible_groups,
)
from app.services.executors.group_tokens import changed_columns
from app.settings.config import Network
from app.store.accounts import api_tokens, rights, users
from app.store.alarms import mutes
from app.store.alarms.channels import has_channel
from app.store.calendars import blackouts
from app.store.executors import drains, last_seen
from app.store.executors import listing as group_lists
from app.store.executors.listing import GroupFilter
from app.store.jobs import listing as job_lists
from app.store.limits import listing as limits
from app.store.runs import reporting
from app.store.variables import variables

__all__ = ["MISSING", "GroupFilter", "get_group", "list_after", "list_groups", "visible_groups"]

APP_NAME_MIN, APP_NAME_MAX = 4, 64
TITLE_MAX = 64
ADDRESS_LIST_MAX = 20_000
ALARM_URLS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """A group as entered in the form."""

    app_name: str = ""
    title: str = ""
    #: 0: automatic; any other value: manual
    address_type: int = 0
    #: comma separated; ignored for automatic groups
    address_list: str = ""
    #: None: unchanged; empty: the global token
    access_token: str | None = None
    #: one URL per line; None: unchanged
    alarm_urls: str | None = None
    #: JSON text of what its jobs promise; None: unchanged
    promises: str | None = None
    #: JSON text; None: unchanged, ``null``: none
    escalation: str | None = None
    #: most runs of its jobs at once, 0: no limit; None: unchanged
    max_running: int | None = None
    #: what of its jobs is archived and how long it is kept; None: unchanged
    log_archive: str | None = None
    log_days: int | None = None
    run_days: int | None = None
    #: refuse what a Java admin on the same database ignores (XXL_JOB_SHARED_WITH_JAVA)
    readable_by_java: bool = False
    #: the channel of an escalation has been looked for
    is_channel_checked: bool = False
    #: networks the addresses of a manual group must lie in
    networks: tuple[Network, ...] = ()
    #: fingerprint of the state that was edited; empty: not compared
    loaded: str = ""


def add_group(session: Session, draft: GroupDraft, *, actor: Actor, now_ms: Millis) -> int:
    """Store a new group; return its id. Administrators only."""
    require_admin(actor)
    group = Group()
    changes = _apply(session, group, draft, now_ms=now_ms)
    session.add(group)
    session.flush()
    audit.record(
        session, "group.add", actor=actor, now_ms=now_ms, target=("group", group.id), changes=changes
    )
    return group.id


def update_group(session: Session, group_id: int, draft: GroupDraft, *, actor: Actor, now_ms: Millis) -> None:
    """Change a group. Administrators only. Raises ChangedMeanwhile unless it is as ``draft.loaded`` says."""
    require_admin(actor)
    group = group_lists.lock_group(session, group_id)
    if group is None:
        raise NotFound(MISSING)
    require_unchanged(draft.loaded, state_of(group))
    changes = _apply(session, group, draft, now_ms=now_ms)
    audit.record(
        session, "group.update", actor=actor, now_ms=now_ms, target=("group", group.id), changes=changes
    )


def end_changeover(session: Session, group_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """End the replacement of a group's token: the former one is valid no longer. Administrators only."""
    require_admin(actor)
    group = group_lists.lock_group(session, group_id)
    if group is None:
        raise NotFound(MISSING)
    if not group.former_token:
        raise Conflict(N_("The access token is not being replaced"))
    changes = {"former_token": [group.former_token, None], "since_ms": group.changeover_ms}
    group.former_token, group.changeover_ms = None, 0
    audit.record(
        session, "group.token", actor=actor, now_ms=now_ms, target=("group", group.id), changes=changes
    )


def remove_group(session: Session, group_id: int, *, actor: Actor, now_ms: Millis) -> None:
    """Delete a group without jobs, its rights and drains, and end its mute. Administrators only.

    The last group cannot be deleted.
    """
    require_admin(actor)
    groups = {group.id: group for group in group_lists.lock_groups(session)}
    if group_id not in groups:
        raise NotFound(MISSING)
    if job_lists.count_of_group(session, group_id):
        raise Conflict(N_("The executor group still has jobs"))
    if len(groups) == 1:
        raise Conflict(N_("At least one executor group must remain"))
    _remove_from_users(session, group_id)
    drains.delete_of_group(session, group_id)
    # Held alarms are sent first; then the mute is deleted.
    mutes.end_mute(session, job_id=0, group_id=group_id, now_ms=now_ms)
    reporting.delete_of_group(session, group_id)
    for variable_id in variables.list_ids_of_group(session, group_id):
        variables.keep_version(session, variable_id, username=actor.username[:64], now_ms=now_ms)
        variables.delete_variable(session, variable_id)
    variables.forget_group(session, group_id)
    limits.delete_of_group(session, group_id)
    blackouts.end_of_group(session, group_id, now_ms=now_ms)
    if not any(
        group.app_name == groups[group_id].app_name for group in groups.values() if group.id != group_id
    ):
        last_seen.delete_of_app(session, groups[group_id].app_name)
    session.flush()
    group_lists.delete_group(session, group_id)
    api_tokens.forget_missing_groups(session)
    changes = {"app_name": groups[group_id].app_name}
    audit.record(
        session, "group.remove", actor=actor, now_ms=now_ms, target=("group", group_id), changes=changes
    )


def _remove_from_users(session: Session, group_id: int) -> None:
    """Delete the rights on a group; its users are locked first, since they may be changed meanwhile."""
    holders = [user.id for user in users.all_users(session) if group_id in user.group_ids]
    for user_id in holders:
        user = users.lock_user(session, user_id)
        if user is not None:
            user.permission = ",".join(str(own_id) for own_id in user.group_ids if own_id != group_id)
    rights.delete_of_group(session, group_id)


def state_of(group: Group) -> dict[str, object]:
    """Return what the form of a group shows; registered addresses change by themselves."""
    is_manual = group.address_type != AddressType.AUTOMATIC
    return {
        "app_name": group.app_name,
        "title": group.title,
        "is_manual": is_manual,
        "address_list": (group.address_list or "") if is_manual else "",
        "alarm_urls": group.alarm_urls or "",
        "promises": group.promises or "",
        "escalation": group.escalation or "",
        "max_running": group.max_running or 0,
        **{name: getattr(group, name) for name in KEEPING},
    }


def check_group(draft: GroupDraft) -> dict[str, object]:
    """Return AppName, title, addresses and promises as stored; raises InvalidInput with all errors."""
    columns, errors = dict[str, object](), InputErrors()
    with errors:
        columns["app_name"] = _app_name(draft.app_name)
    with errors:
        title = required_text("title", draft.title, TITLE_MAX, N_("Enter a title"))
        columns["title"] = _no_markup("title", title, N_("The title is invalid"))
    is_manual = draft.address_type != AddressType.AUTOMATIC
    columns["address_type"] = int(AddressType.MANUAL if is_manual else AddressType.AUTOMATIC)
    with errors:
        if is_manual:
            columns["address_list"] = ",".join(read_addresses(draft.address_list, draft.networks))
    for name in GROUP_STRUCTURES:
        with errors:
            text = getattr(draft, name)
            if text is not None:
                columns[name] = structure_column(FIELD_OF[name], text)
    with errors:
        if draft.max_running is not None:
            _check_most(draft)
            columns["max_running"] = draft.max_running
    for name in KEEPING:
        with errors:
            if (value := getattr(draft, name)) is not None:
                columns[name] = checked_value(FIELD_OF[name], value)
    errors.raise_all()
    return columns


def _check_most(draft: GroupDraft) -> None:
    """Raise InvalidInput for a number of most runs at once that is out of range, or beside a Java admin."""
    field = FIELD_OF["max_running"]
    number = checked_number(field, draft.max_running or 0)
    if draft.readable_by_java and number:
        raise InvalidInput(field.error_name, WITHOUT_JAVA)


def _apply(session: Session, group: Group, draft: GroupDraft, *, now_ms: Millis) -> dict[str, object]:
    """Check a draft and write it into the group; return the changed columns."""
    columns, errors = dict[str, object](), InputErrors()
    with errors:
        columns |= check_group(draft)
    with errors:
        if draft.access_token is not None:
            columns |= changed_columns(group, draft.access_token, now_ms=now_ms)
    with errors:
        if draft.alarm_urls is not None:
            check_urls("alarmUrls", draft.alarm_urls)
            urls = limited_text("alarmUrls", draft.alarm_urls.strip(), ALARM_URLS_MAX)
            columns["alarm_urls"] = urls or None
    with errors:
        if draft.escalation is not None and not draft.is_channel_checked and _is_changed(group, columns):
            check_escalation(draft.escalation, partial(has_channel, session, group_ids=None))
    errors.raise_all()
    if columns["address_type"] == AddressType.AUTOMATIC:
        columns["address_list"] = _registered_addresses(session, group, str(columns["app_name"]), now_ms)
    changes = audit.difference({name: getattr(group, name) for name in columns}, columns)
    for name, value in columns.items():
        setattr(group, name, value)
    group.update_time = now_ms
    return dict(changes)


def _is_changed(group: Group, columns: Mapping[str, object]) -> bool:
    """Whether the escalation is another one; the channel of one that stays may be gone."""
    return columns.get("escalation") != group.escalation


def _app_name(text: str) -> str:
    name = required_text("appname", text, APP_NAME_MAX, N_("Enter an AppName"))
    if len(name) < APP_NAME_MIN:
        raise InvalidInput(
            "appname",
            N_("The AppName must have %(low)s to %(high)s characters", low=APP_NAME_MIN, high=APP_NAME_MAX),
        )
    wrong = next((sign for sign in name if sign.isspace() or not sign.isprintable() or sign in "<>"), None)
    if wrong == " ":
        problem = N_('"%(name)s" contains a space; use lowercase letters, digits and - only', name=name)
        raise InvalidInput("appname", problem)
    if wrong is not None:
        sign = wrong if wrong.isprintable() else f"U+{ord(wrong):04X}"
        problem = N_(
            '"%(name)s" contains %(wrong)s; use lowercase letters, digits and - only', name=name, wrong=sign
        )
        raise InvalidInput("appname", problem)
    return name


def _no_markup(field: str, text: str, refusal: Text) -> str:
    if "<" in text or ">" in text or not text.isprintable():
        raise InvalidInput(field, refusal)
    return text


def read_addresses(text: str, networks: tuple[Network, ...]) -> list[str]:
    """Split and check the addresses of a manual group; raises InvalidInput with all bad ones."""
    if not text.strip():
        raise InvalidInput("addressList", N_("Enter the addresses of a manual executor group"))
    text = limited_text("addressList", text.strip(), ADDRESS_LIST_MAX)
    items = [item.strip() for item in text.rstrip(",").split(",")]
    if not all(items):
        raise InvalidInput("addressList", N_("The addresses must be separated by single commas"))
    errors = InputErrors()
    for address in items:
        with errors:
            check_address(address, networks)
    errors.raise_all()
    return list(dict.fromkeys(items))


def _registered_addresses(session: Session, group: Group, app_name: str, now_ms: Millis) -> str | None:
    """Return the address list of an automatic group, before the draft is applied to it."""
    is_same = group.address_type == AddressType.AUTOMATIC and group.app_name == app_name
    addresses = group.addresses if is_same else ()
    return ",".join(sorted(listed_addresses(session, app_name, addresses, now_ms=now_ms))) or None
