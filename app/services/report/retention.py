"""Retention of runs: by the days of their job, else of its group, else of the installation."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial

from app.clock import Millis
from app.database.engine import read_scope, transact
from app.store.archive.expiry import own_days
from app.store.runs import reporting

#: the report counts today and the two days before from the runs
DAYS_MIN = 3
#: jobs of one statement
JOBS_AT_ONCE = 500


def delete_old_runs(days: int, midnight_ms: Callable[[int], Millis], *, limit: int) -> int:
    """Delete a batch of old runs; return how many of ``limit``. Opens its own transactions.

    ``days`` of the installation, 0: they are kept; ``midnight_ms`` of so many days ago.
    """
    with read_scope() as session:
        own = own_days(session, "run_days")
        others = reporting.find_jobs_except(session, own) if own and days else []
    if not own:
        before_ms = midnight_ms(days)
        return (
            transact(partial(reporting.delete_logs_before, before_ms=before_ms, limit=limit)) if days else 0
        )
    jobs_by_days = defaultdict[int, list[int]](list)
    for job_id, count in own.items():
        jobs_by_days[max(count, DAYS_MIN)].append(job_id)
    jobs_by_days[days] += others
    total = 0
    for count, job_ids in jobs_by_days.items():
        for start in range(0, len(job_ids), JOBS_AT_ONCE) if count else ():
            some = job_ids[start : start + JOBS_AT_ONCE]
            delete = partial(reporting.delete_logs_of_jobs, job_ids=some, before_ms=midnight_ms(count))
            total += transact(partial(delete, limit=limit - total))
            if total >= limit:
                return total
    return total
