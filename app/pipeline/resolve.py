"""Settling runs whose fate is unknown. DESIGN section 4, stage 7."""

import logging

from app.clock import Millis
from app.db import transact
from app.store import fires

logger = logging.getLogger(__name__)

#: leases looked at in one round
LEASE_ROWS = 500


def expire_leases(*, now_ms: Millis) -> int:
    """Call unknown what a sender took and never reported; return how many. Opens its own transaction."""
    unknown = transact(lambda session: fires.set_expired_unknown(session, now_ms=now_ms, limit=LEASE_ROWS))
    if unknown:
        logger.warning("leases expired count=%s", len(unknown))
    return len(unknown)
