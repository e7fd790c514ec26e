"""Notice of calendars that end: once a week, from one node, about those that jobs name."""

from datetime import UTC, datetime

import pytest

from app.clock import DAY_MS, Millis
from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.domain.calendars.drafts import CalendarDraft
from app.models.audit import AuditEntry
from app.services.alarms.calendar_notices import EVERY_MS, NOTICE, take_due
from app.services.calendars import calendars
from app.settings.config import Config
from tests.support.factories import all_rows, make_job

pytestmark = pytest.mark.usefixtures("database")


def at(text: str) -> Millis:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000


def put(name: str, valid_until: str, **entered: str) -> None:
    draft = CalendarDraft(valid_until=valid_until, **entered)  # type: ignore[arg-type]
    with session_scope() as session:
        calendars.put_calendar(
            session, name, draft, actor=system_actor("ann"), clock=lambda: at("2026-01-01")
        )


def test_it_is_sent_once_a_week_while_the_next_year_is_unknown(config: Config) -> None:
    put("cn", "2026-12-31", unknown="holiday")
    put("unused", "2026-12-31")
    make_job(calendar='{"name": "cn"}')
    assert take_due(config, node="one", now_ms=at("2026-10-30")) is None
    begin_ms = at("2026-11-02")
    message = take_due(config, node="one", now_ms=begin_ms)
    assert message is not None
    assert message.title.endswith("calendars do not know the coming days: cn")
    assert message.body.startswith(
        "Calendar cn: knows days up to 2026-12-31; later ones are taken as holidays. 1 job by it."
    )
    assert take_due(config, node="two", now_ms=begin_ms + EVERY_MS - 1) is None
    assert take_due(config, node="two", now_ms=begin_ms + EVERY_MS) is not None
    put("cn", "2027-12-31")
    assert take_due(config, node="two", now_ms=begin_ms + 2 * EVERY_MS) is None
    notices = [entry for entry in all_rows(AuditEntry) if entry.action == NOTICE]
    assert [entry.username for entry in notices] == ["one", "two"]
    assert take_due(config, node="one", now_ms=at("2028-01-01") + DAY_MS) is not None, "it was not renewed"
