"""Mutes: no alarms of a job or an executor group for a while; runs and results are not affected."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.alarms.muting import REASON_MAX, UNTIL_UNDONE_MS, MuteSpan, end_of, is_muted
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import limited_text
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.mute import Mute
from app.services.alarms.muted_alarms import when_text
from app.services.auditing import audit
from app.services.executors import groups
from app.services.jobs import job_list
from app.store.alarms import mutes
from app.store.base import locks
from app.store.executors import groups as group_store
from app.store.executors import listing as group_lists
from app.store.jobs import scheduling as job_store

MISSING = N_("There is no such mute in effect")
#: mutes shown in a list
LISTED_MAX = 50


@dataclass(frozen=True, slots=True)
class MuteDraft:
    """A mute as entered in the form."""

    #: one of ``MuteSpan``; not read if ``until_ms`` is given
    span: str = ""
    reason: str = ""
    #: IANA time zone of the user
    zone: str = "UTC"
    #: end of the mute; None: by its span
    until_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class Muted:
    """A mute with the name of its job or group."""

    mute: Mute
    name: str
    #: its group, or that of its job; 0: the job was deleted
    group_id: int = 0


def mute_job(session: Session, job_id: int, draft: MuteDraft, *, actor: Actor, now_ms: Millis) -> None:
    """Mute the alarms of a job, or change its mute. Needs the right to operate its group."""
    # locked, since deleting the job meanwhile would leave its mute behind
    job = next(iter(locks.lock_jobs(session, [job_id])), None)
    if job is None:
        raise NotFound(job_list.MISSING)
    require_right(actor, job.job_group, Right.OPERATE, missing=job_list.MISSING)
    _mute(session, ("job", job_id), draft, actor=actor, now_ms=now_ms)


def mute_group(session: Session, group_id: int, draft: MuteDraft, *, actor: Actor, now_ms: Millis) -> None:
    """Mute the alarms of all jobs of a group, including later ones. Needs the right to operate it."""
    groups.get_group(session, group_id, actor=actor, right=Right.OPERATE)
    if group_lists.hold_group(session, group_id) is None:
        raise NotFound(groups.MISSING)
    _mute(session, ("group", group_id), draft, actor=actor, now_ms=now_ms)


def unmute(session: Session, *, job_id: int = 0, group_id: int = 0, actor: Actor, now_ms: Millis) -> None:
    """End the mute of a job, or that of a group alone, if there is one. Needs the right to operate it."""
    if job_id:
        job_list.get_job(session, job_id, actor=actor, right=Right.OPERATE)
    else:
        groups.get_group(session, group_id, actor=actor, right=Right.OPERATE)
    if mutes.end_mute(session, job_id=job_id, group_id=group_id, now_ms=now_ms):
        target = ("job", job_id) if job_id else ("group", group_id)
        audit.record(session, "alarm.unmute", actor=actor, now_ms=now_ms, target=target)


def find_of(session: Session, *, job_id: int = 0, group_id: int = 0, now_ms: Millis) -> Mute | None:
    """Return the own mute of a job, or that of a group, if it is in effect."""
    mute = mutes.find_mute(session, job_id=job_id, group_id=group_id)
    return mute if mute is not None and is_muted(mute.until_ms, now_ms) else None


def get_mute(session: Session, mute_id: int, *, actor: Actor, right: Right, now_ms: Millis) -> Muted:
    """Return a mute in effect of a job or group on which the actor has a right; raises NotFound."""
    mute = mutes.find_holding(session, mute_id, now_ms=now_ms)
    if mute is None:
        raise NotFound(MISSING)
    job = job_store.find_names(session, [mute.job_id]).get(mute.job_id) if mute.job_id else None
    group_id = job.job_group if job is not None else mute.group_id
    require_right(actor, group_id, right, missing=MISSING)
    if job is not None:
        return Muted(mute, job.job_desc)
    group = group_store.find_groups(session, [group_id]).get(group_id)
    return Muted(mute, group.title if group is not None else "")


def list_muted(
    session: Session,
    actor: Actor,
    *,
    now_ms: Millis,
    limit: int = LISTED_MAX,
    after: tuple[Millis, int] = (0, 0),
) -> list[Muted]:
    """Return the mutes in effect that the actor may see, earliest end first, behind ``after`` (end, id)."""
    visible = actor.group_ids(Right.VIEW)
    rows = mutes.list_holding(session, visible, now_ms=now_ms, limit=limit, after=after)
    names = job_store.find_names(session, [mute.job_id for mute in rows if mute.job_id])
    groups_by_id = group_store.find_groups(session, [mute.group_id for mute in rows if mute.group_id])
    titles = (
        {job_id: name.job_desc for job_id, name in names.items()},
        {group_id: group.title for group_id, group in groups_by_id.items()},
    )
    return [
        Muted(
            mute,
            titles[0].get(mute.job_id) or titles[1].get(mute.group_id, ""),
            names[mute.job_id].job_group if mute.job_id in names else mute.group_id,
        )
        for mute in rows
    ]


def _mute(
    session: Session, target: tuple[str, int], draft: MuteDraft, *, actor: Actor, now_ms: Millis
) -> None:
    errors, reason, until_ms = InputErrors(), "", now_ms
    with errors:
        until_ms = _end_of(draft, now_ms)
    with errors:
        reason = " ".join(limited_text("reason", draft.reason, REASON_MAX).split())
    errors.raise_all()
    row = {"since_ms": now_ms, "until_ms": until_ms, "username": actor.username[:64], "reason": reason}
    kind, object_id = target
    ids = {"job_id": object_id if kind == "job" else 0, "group_id": object_id if kind == "group" else 0}
    mutes.save_mute(session, ids | row)
    changes = {"until": when_text(until_ms), "reason": reason}
    audit.record(session, "alarm.mute", actor=actor, now_ms=now_ms, target=target, changes=changes)


def _end_of(draft: MuteDraft, now_ms: Millis) -> Millis:
    if draft.until_ms is None:
        if draft.span not in set(MuteSpan):
            raise InvalidInput("span", N_("Choose one of the listed values"))
        return end_of(MuteSpan(draft.span), now_ms=now_ms, zone=draft.zone)
    if not is_muted(draft.until_ms, now_ms):
        raise InvalidInput("until", N_("The end of a mute must be in the future"))
    return min(draft.until_ms, UNTIL_UNDONE_MS)
