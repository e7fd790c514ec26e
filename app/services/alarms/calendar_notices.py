"""Weekly notice of calendars that do not know what comes: to the channels for all jobs, from one node."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, SECOND_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.access.permissions import system_actor
from app.domain.text.texts import counted
from app.services.alarms.channels import Message, MessageType
from app.services.alarms.texts import PREFIX, console_url
from app.services.auditing import audit
from app.settings.config import Config
from app.store.accounts.audit import find_newest
from app.store.base import locks
from app.store.calendars.calendars import EndingCalendar, list_ending

#: audited action: a notice about calendars was sent
NOTICE = "node.calendars"
#: period of the search; a notice is sent once in so long
PERIOD_MS: Millis = HOUR_MS
EVERY_MS: Millis = 7 * DAY_MS
_TARGET = ("node", 0)


def take_due(config: Config, *, node: str, now_ms: Millis) -> Message | None:
    """Return the notice that is due, to exactly one node; None: none is."""
    today = datetime.fromtimestamp(now_ms // SECOND_MS, ZoneInfo(config.time_zone)).date()
    with read_scope() as session:
        ending = list_ending(session, today)
        is_due = bool(ending) and _is_due(session, now_ms)
    if not is_due or not transact(partial(_take, node=node, ending=ending, now_ms=now_ms)):
        return None
    return compose(ending, config)


def compose(ending: Sequence[EndingCalendar], config: Config) -> Message:
    """Write the notice: which calendars end, how their later days are taken, and what to do."""
    lines = [
        f"Calendar {row.calendar.name}: knows days up to {row.calendar.valid_until}; later ones are taken"
        f" {_RULES[row.calendar.unknown]}. {counted(row.jobs, 'job')} by it."
        for row in ending
    ]
    lines += [
        "Import the days that were announced: duetime calendars import NAME --country CODE --years YEARS",
        f"{console_url(config)}/calendars",
    ]
    names = ", ".join(row.calendar.name for row in ending)
    title = f"{PREFIX} calendars do not know the coming days: {names}"
    return Message(title, "\n".join(lines), MessageType.WARNING, {"state": "node"})


_RULES = {"weekday": "by their weekday", "holiday": "as holidays", "workday": "as workdays"}


def _is_due(session: Session, now_ms: Millis) -> bool:
    kind, node_id = _TARGET
    newest = find_newest(session, NOTICE, kind, [node_id])
    return all(entry.at_ms <= now_ms - EVERY_MS for entry in newest)


def _take(session: Session, *, node: str, ending: Sequence[EndingCalendar], now_ms: Millis) -> bool:
    """Record the notice, unless another node has just sent it."""
    locks.take_schedule_lock(session)
    if not _is_due(session, now_ms):
        return False
    changes = {"calendars": [row.calendar.name for row in ending]}
    audit.record(session, NOTICE, actor=system_actor(node), now_ms=now_ms, target=_TARGET, changes=changes)
    return True
