"""Blackouts: list, add, end; an executor group off and on again.

Those for everything or for a tag are made and ended by administrators, those of a group or a job by who has
*operate* there. A change takes effect at its commit. docs/reference/blackouts.md.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor, Right, require_admin, require_right
from app.domain.calendars.blackouts import Afterwards, Blackout
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from app.pipeline.calendars.changes import begin_change
from app.services.auditing import audit
from app.services.calendars.blackout_rules import BlackoutDraft, check_draft, check_times
from app.store.base import locks
from app.store.calendars import blackouts as store
from app.store.calendars import current_book
from app.store.calendars.blackouts import ListedBlackout
from app.store.executors import listing as group_lists

__all__ = ["BlackoutDraft"]

MISSING = N_("There is no such blackout")
NO_GROUP = N_("There is no such executor group")
NO_JOB = N_("There is no such job")
#: blackouts of an installation that are not over
LASTING_MAX: Final = 500
#: columns that the audit names as those of jobs
_AUDITED: Final = {"group_id": "job_group", "zone": "time_zone"}


class BlackoutState(StrEnum):
    """Where a blackout is."""

    ON = "on"
    #: it, or the next window of a recurring one, is to come
    COMING = "coming"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class BlackoutView:
    """A blackout as it is now."""

    blackout: Blackout
    state: BlackoutState
    #: from and until of the window that is on, or else of the next one; None: it is over
    window: tuple[Millis, Millis | None] | None
    author: str
    created_ms: Millis
    #: when a user ended it; None: it was not ended
    ended_ms: Millis | None
    #: title of its group, or name of its job; None: it is of neither, or they are gone
    name: str | None
    #: its group, or that of its job; None as well
    group_id: int | None

    @property
    def id(self) -> int:
        """Id of the blackout."""
        return self.blackout.id

    @property
    def is_recurring(self) -> bool:
        """Whether it is on again and again."""
        return bool(self.blackout.cron)


def list_lasting(session: Session, *, actor: Actor, now_ms: Millis) -> list[BlackoutView]:
    """Return the blackouts that the actor may see and that are not over: those on first, then by window."""
    if not actor.has_anywhere(Right.VIEW):
        return []
    rows = store.list_lasting(session, actor.group_ids(Right.VIEW), now_ms=now_ms)
    return sorted((_view(row, now_ms) for row in rows), key=_order)


def list_page(
    session: Session,
    *,
    actor: Actor,
    now_ms: Millis,
    state: BlackoutState | None = None,
    before_id: int = 0,
    limit: int,
) -> list[BlackoutView]:
    """Return the newest blackouts in a state (None: in any) with ids below ``before_id`` (0: all)."""
    if not actor.has_anywhere(Right.VIEW):
        return []
    visible = actor.group_ids(Right.VIEW)
    if state is None or state is BlackoutState.OVER:
        over_at_ms = now_ms if state is BlackoutState.OVER else None
        rows = store.list_newest(session, visible, over_at_ms=over_at_ms, before_id=before_id, limit=limit)
        return [_view(row, now_ms) for row in rows]
    lasting = store.list_lasting(session, visible, now_ms=now_ms)
    views = (_view(row, now_ms) for row in lasting if not before_id or row.id < before_id)
    return [view for view in views if view.state is state][:limit]


def list_of_job(
    session: Session, job_id: int, group_id: int, *, actor: Actor, now_ms: Millis
) -> list[BlackoutView]:
    """Return the blackouts that concern a job and are not over."""
    ids = {blackout.id for blackout in current_book.current().blackouts_of(job_id, group_id)}
    return [view for view in list_lasting(session, actor=actor, now_ms=now_ms) if view.id in ids]


def get_blackout(session: Session, blackout_id: int, *, actor: Actor, now_ms: Millis) -> BlackoutView:
    """Return a blackout; raises NotFound."""
    return _view(_get(session, blackout_id, actor), now_ms)


def may_change(actor: Actor, blackout: Blackout, group_id: int | None) -> bool:
    """Whether the actor may end a blackout; ``group_id``: its group, or that of its job."""
    is_of_group = _is_of_one(blackout) and group_id is not None
    return actor.is_admin or (is_of_group and actor.may(group_id or 0, Right.OPERATE))


def add_blackout(session: Session, draft: BlackoutDraft, *, actor: Actor, clock: Clock) -> BlackoutView:
    """Make a blackout, which holds from the commit on.

    Raises InvalidInput with the errors of all fields, PermissionDenied, NotFound and Conflict.
    """
    draft = check_draft(draft, now_ms=clock())
    if draft.is_for_many:
        require_admin(actor)
    locks.take_schedule_lock(session)
    _require_scope(session, draft, actor)
    if store.count_lasting(session, now_ms=clock()) >= LASTING_MAX:
        raise Conflict(
            N_("There are %(limit)s blackouts that are not over; end some of them first", limit=LASTING_MAX)
        )
    job_ids = _jobs_of(session, draft.group_id, draft.job_id, draft.tag)
    change = begin_change(session, job_ids, clock=clock)
    from_ms, until_ms = check_times(draft, now_ms=change.now_ms)
    columns: dict[str, Any] = {
        "from_ms": from_ms,
        "until_ms": until_ms,
        "cron": draft.cron,
        "duration_s": draft.duration_s or 0,
        "zone": draft.time_zone,
        "group_id": draft.group_id,
        "job_id": draft.job_id,
        "tag": draft.tag,
        "afterwards": draft.afterwards,
        "reason": draft.reason,
    }
    blackout_id = store.insert_blackout(
        session, **columns, author=actor.username[:64], created_ms=change.now_ms, ended_ms=None
    )
    if draft.tag and job_ids:
        store.add_members(session, [(blackout_id, job_id) for job_id in job_ids], now_ms=change.now_ms)
    entry = {
        **columns,
        "group_id": None,
        "job_group": draft.group_id,
        "zone": "",
        "time_zone": draft.time_zone,
    }
    _record(session, "blackout.add", blackout_id, entry, actor=actor, now_ms=change.now_ms)
    change.finish(session)
    return get_blackout(session, blackout_id, actor=actor, now_ms=change.now_ms)


def end_blackout(session: Session, blackout_id: int, *, actor: Actor, clock: Clock) -> BlackoutView:
    """End a blackout now, or one that is to come before it begins; raises Conflict if it is over."""
    locks.take_schedule_lock(session)
    row = _get(session, blackout_id, actor)
    blackout = row.blackout
    if not may_change(actor, blackout, row.scope_group_id):
        raise PermissionDenied(N_("permission denied"))
    job_ids = _jobs_of(session, blackout.group_id, blackout.job_id, blackout.tag)
    change = begin_change(session, job_ids, clock=clock)
    now_ms = change.now_ms
    if row.ended_ms is not None or (blackout.until_ms is not None and blackout.until_ms <= now_ms):
        raise Conflict(N_("The blackout is over already"))
    until_ms = max(now_ms, blackout.from_ms)
    store.end_blackout(session, blackout.id, until_ms=until_ms, now_ms=now_ms)
    changes: dict[str, object] = {"reason": blackout.reason, "until_ms": [blackout.until_ms, until_ms]}
    _record(session, "blackout.end", blackout.id, changes, actor=actor, now_ms=now_ms)
    change.finish(session)
    return get_blackout(session, blackout_id, actor=actor, now_ms=now_ms)


def find_group_off(session: Session, group_id: int, *, actor: Actor, now_ms: Millis) -> BlackoutView | None:
    """Return the blackout that has switched an executor group off; None: it is on."""
    lasting = list_lasting(session, actor=actor, now_ms=now_ms)
    of_group = (view for view in lasting if view.blackout.group_id == group_id)
    return next((view for view in of_group if _switches_off(view.blackout, now_ms)), None)


def switch_off_group(
    session: Session,
    group_id: int,
    *,
    reason: str,
    afterwards: str = Afterwards.SKIP.value,
    actor: Actor,
    clock: Clock,
    readable_by_java: bool = False,
) -> BlackoutView:
    """Switch an executor group off by a blackout without an end; the switches of its jobs stay as they are.

    Raises the errors of ``add_blackout``, and Conflict if it is off already.
    """
    require_right(actor, group_id, Right.OPERATE, missing=NO_GROUP)
    locks.take_schedule_lock(session)
    if find_group_off(session, group_id, actor=actor, now_ms=clock()) is not None:
        raise Conflict(N_("The executor group is switched off already"))
    draft = BlackoutDraft(
        reason=reason, afterwards=afterwards, group_id=group_id, readable_by_java=readable_by_java
    )
    return add_blackout(session, draft, actor=actor, clock=clock)


def switch_on_group(session: Session, group_id: int, *, actor: Actor, clock: Clock) -> None:
    """End what has switched an executor group off; raises PermissionDenied, NotFound and Conflict."""
    require_right(actor, group_id, Right.OPERATE, missing=NO_GROUP)
    locks.take_schedule_lock(session)
    off = find_group_off(session, group_id, actor=actor, now_ms=clock())
    if off is None:
        raise Conflict(N_("The executor group is not switched off"))
    end_blackout(session, off.id, actor=actor, clock=clock)


def find_groups_off(*, now_ms: Millis) -> frozenset[int]:
    """Return the executor groups that are switched off, as of a second ago at most."""
    blackouts = current_book.current().blackouts
    return frozenset(
        blackout.group_id for blackout in blackouts if blackout.group_id and _switches_off(blackout, now_ms)
    )


def _switches_off(blackout: Blackout, now_ms: Millis) -> bool:
    """Whether a blackout of a group is one that switches it off."""
    is_endless = blackout.until_ms is None and not blackout.cron
    return is_endless and blackout.from_ms <= now_ms


def _get(session: Session, blackout_id: int, actor: Actor) -> ListedBlackout:
    row = store.find_blackout(session, blackout_id)
    if row is None:
        raise NotFound(MISSING)
    if row.scope_group_id is not None:
        require_right(actor, row.scope_group_id, Right.VIEW, missing=MISSING)
    elif not (actor.is_admin if _is_of_one(row.blackout) else actor.has_anywhere(Right.VIEW)):
        raise NotFound(MISSING)
    return row


def _is_of_one(blackout: Blackout) -> bool:
    return blackout.group_id is not None or blackout.job_id is not None


def _require_scope(session: Session, draft: BlackoutDraft, actor: Actor) -> None:
    """Hold the group or job of a blackout against deletion, and check the right."""
    group_id: int | None = None
    if draft.group_id is not None:
        if not actor.may(draft.group_id, Right.VIEW) or not group_lists.hold_group(session, draft.group_id):
            raise InvalidInput("group_id", NO_GROUP)
        group_id = draft.group_id
    elif draft.job_id is not None:
        group_id = locks.lock_group_of(session, draft.job_id)
        if group_id is None or not actor.may(group_id, Right.VIEW):
            raise InvalidInput("job_id", NO_JOB)
    if group_id is not None:
        require_right(actor, group_id, Right.OPERATE, missing=NO_GROUP)


def _jobs_of(session: Session, group_id: int | None, job_id: int | None, tag: str) -> Collection[int] | None:
    """Return the ids of the jobs that a blackout concerns; None: all."""
    if tag:
        return store.find_ids_with_tag(session, tag)
    if job_id is not None:
        return [job_id]
    return store.find_ids_of_group(session, group_id) if group_id is not None else None


def _view(row: ListedBlackout, now_ms: Millis) -> BlackoutView:
    blackout = row.blackout
    window = blackout.window_at(now_ms)
    state = BlackoutState.ON
    if window is None:
        window = blackout.next_window(now_ms) if row.ended_ms is None else None
        state = BlackoutState.OVER if window is None else BlackoutState.COMING
    return BlackoutView(
        blackout,
        state,
        window,
        row.author,
        row.created_ms,
        row.ended_ms,
        row.name,
        row.scope_group_id,
    )


def _order(view: BlackoutView) -> tuple[int, Millis, int]:
    """Those that are on by their ends, those to come by their beginnings."""
    if view.window is None:
        return 2, 0, -view.id
    if view.state is BlackoutState.ON:
        until_ms = view.window[1]
        return 0, 2**63 if until_ms is None else until_ms, view.id
    return 1, view.window[0], view.id


def _record(
    session: Session,
    action: str,
    blackout_id: int,
    columns: Mapping[str, object],
    *,
    actor: Actor,
    now_ms: Millis,
) -> None:
    changes = {name: value for name, value in columns.items() if value not in (None, "", 0)}
    target = ("blackout", blackout_id)
    audit.record(session, action, actor=actor, now_ms=now_ms, target=target, changes=changes)
