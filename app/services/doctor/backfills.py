"""Check of backfills: those that do not go on, and active ones beside a Java admin. Reads only."""

import json

from sqlalchemy.orm import Session

from app.clock import DAY_MS, now_ms
from app.domain.backfills.kinds import ACTIVE, BackfillState
from app.domain.packed_text import unpack
from app.services.doctor.findings import Findings, NothingFound, check, name_list, warning
from app.settings.config import Config
from app.store.backfills import records

#: most active backfills that are read
READ_MAX = 1_000


@check("backfills")
def check_backfills(session: Session, config: Config) -> Findings:
    """Name backfills that were paused by an error, that have stood still for a day, and those beside Java."""
    active = records.find_page(session, None, states=ACTIVE, limit=READ_MAX)
    pauses = [row for row in active if row.state == BackfillState.PAUSED and row.reason]
    if pauses:
        reasons = name_list([f"{row.id} ({unpack(json.loads(row.reason or 'null'))})" for row in pauses])
        yield warning(
            f"backfills were paused, and not by a user: {reasons}",
            "look at them and go on: duetime backfills resume ID; or: duetime backfills cancel ID",
        )
    before_ms = now_ms() - DAY_MS
    still = [row for row in active if row.state != BackfillState.PAUSED and row.updated_ms < before_ms]
    if still:
        yield warning(
            f"backfills have ended no run for more than a day: {name_list([str(row.id) for row in still])}",
            "look at their runs: duetime backfills show ID --state running",
        )
    if config.shared_with_java and active:
        yield warning(
            f"backfills beside a Java admin, which knows none: {name_list([str(row.id) for row in active])}",
            "cancel them, or end the Java admin and unset XXL_JOB_SHARED_WITH_JAVA",
        )
    yield NothingFound("no backfill stands still")
