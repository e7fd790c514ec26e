"""Sample calendars, and a job that goes by one of them."""

import json
from collections.abc import Sequence
from datetime import date

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import system_actor
from app.domain.calendars.calendar import DayKind
from app.models.job import Job
from app.services.calendars import calendars
from app.services.calendars.countries import country_days
from app.services.calendars.days import CountryDays

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
