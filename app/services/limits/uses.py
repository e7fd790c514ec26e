"""Uses of named limits: `xxl_job_limit_use` is kept equal to what the jobs name, for the claims."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.domain.limits.rules import LIMITS, KnownLimit, check_share, uses_of
from app.store.limits import listing, uses


def keep_uses(session: Session, job_ids: Collection[int]) -> None:
    """Store the uses of these jobs, which the caller has locked and written; a few statements for all.

    Locks the limits, so that none is deleted or made smaller meanwhile. Raises InvalidInput for a limit that
    the rules have not seen, or not as it is now.
    """
    if not job_ids:
        return
    shares_by_job = {job: uses_of(job.limits) for job in uses.read_limits(session, job_ids)}
    names = {name for shares in shares_by_job.values() for name, _ in shares}
    limit_rows = listing.lock_named(session, names) if names else []
    limits = {limit.name: KnownLimit(limit.id, limit.group_id, limit.slots) for limit in limit_rows}
    rows = list[bulk.Row]()
    for job, shares in shares_by_job.items():
        for number, (name, weight) in enumerate(dict(shares).items()):
            check_share(f"{LIMITS}.{number}", name, weight, limits.get(name), job.group_id)
            rows.append({"job_id": job.id, "limit_id": limits[name].id, "weight": weight})
    uses.replace_uses(session, job_ids, rows)
