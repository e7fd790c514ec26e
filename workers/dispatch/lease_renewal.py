"""Renewal of the leases of a claim that took too long; belongs to the dispatcher's loop."""

import logging
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.clock import Millis, elapsed_s, now_ms
from app.database.batch_writer import BatchWriter
from app.database.faults import AWAY, fault_log
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.record import Lease, renew
from workers.dispatch.claim_pace import ClaimPace, Timing, with_timing

logger = logging.getLogger(__name__)

#: renewals of a slow claim's lease before its runs are given back
RENEWALS_MAX = 3


async def keep_leases(
    claims: list[ClaimedRun], timing: Timing, pace: ClaimPace, writer: BatchWriter, node: str
) -> tuple[list[ClaimedRun], float]:
    """Return the claims still ours and the deadline for starting their sends, by ``elapsed_s``.

    The lease of a claim that took too long is renewed, up to RENEWALS_MAX times.
    """
    start_before = pace.start_before(timing, elapsed_s())
    for _ in range(RENEWALS_MAX):
        if not claims or elapsed_s() < start_before:
            break
        lease_ms = pace.lease_ms

        def renew_group(
            session: Session, group: Sequence[ClaimedRun], lease_ms: Millis = lease_ms
        ) -> list[ClaimedRun]:
            return renew(session, group, Lease(node, now_ms() + lease_ms))

        try:
            renewals = await writer.write(claims, with_timing(renew_group, lease_ms))
        except AWAY as exc:
            fault_log.write(logger, f"leases not renewed count={len(claims)}", exc)
            break
        claims = [run for runs, _ in renewals for run in runs]
        committed_s, timing = elapsed_s(), renewals[-1][1] if renewals else timing
        pace.observe(committed_s - timing.started_s)
        start_before = pace.start_before(timing, committed_s)
    return claims, start_before
