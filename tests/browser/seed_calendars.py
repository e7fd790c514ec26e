"""Sample calendars with a job that goes by one of them, and blackouts."""

import json
from collections.abc import Sequence
from datetime import date

from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, Millis
from app.domain.access.permissions import system_actor
from app.domain.calendars.calendar import DayKind
from app.models.base import zone_name
from app.models.calendar import JobBlackout, RuleChange
from app.models.job import Job
from app.services.calendars import calendars
from app.services.calendars.countries import country_days
from app.services.calendars.days import CountryDays

#: reasons of the blackouts
REASONS = {
    "en": ("year-end freeze", "file server is moved", "database maintenance", "move of the data centre"),
    "zh_CN": ("年终封网", "文件服务器迁移", "数据库维护", "机房搬迁"),
}
#: name of the calendar of a company
COMPANY = {"en": "company", "zh_CN": "公司"}


def add_calendars(session: Session, jobs: Sequence[Job], language: str, now_ms: Millis) -> int:
    """Add calendars of a country and of a company; return the id of the first."""
    actor = system_actor("admin")
    days = country_days("CN", [2025, 2026])
    china = calendars.import_days(session, "cn", days, actor=actor, clock=lambda: now_ms)
    party = date(2026, 12, 18)
    own = CountryDays({party: DayKind.HOLIDAY}, {party: "Company party"})
    name = COMPANY.get(language, COMPANY["en"])
    calendars.import_days(session, name, own, actor=actor, clock=lambda: now_ms)
    rule = {"name": "cn", "on": "workdays", "otherwise": "next", "nth": None}
    jobs[3].calendar, jobs[3].schedule_conf = json.dumps(rule), "0 0 6 * * ?"
    return china.id


def add_blackouts(session: Session, jobs: Sequence[Job], language: str, now_ms: Millis) -> int:
    """Add blackouts that are on, to come, recurring and over; return the id of the first."""
    freeze, deploy, maintenance, moved = REASONS.get(language, REASONS["en"])
    rows = [
        JobBlackout(
            job_id=jobs[2].id,
            from_ms=now_ms - HOUR_MS,
            until_ms=now_ms + 6 * HOUR_MS,
            reason=deploy,
        ),
        JobBlackout(
            group_id=jobs[7].job_group,
            from_ms=now_ms + 30 * DAY_MS,
            until_ms=now_ms + 33 * DAY_MS,
            reason=freeze,
        ),
        JobBlackout(
            job_id=jobs[2].id,
            from_ms=now_ms - DAY_MS,
            until_ms=None,
            cron="0 0 2 ? * SUN",
            duration_s=7_200,
            zone=zone_name(),
            afterwards="run_once",
            reason=maintenance,
        ),
        JobBlackout(
            from_ms=now_ms - 9 * DAY_MS,
            until_ms=now_ms - 8 * DAY_MS,
            ended_ms=now_ms - 8 * DAY_MS,
            reason=moved,
        ),
    ]
    for row in rows:
        row.author, row.created_ms = "admin", row.from_ms
        session.add(row)
        session.flush()
    session.add(RuleChange(number=now_ms * 1_000 + 7))
    return rows[0].id
