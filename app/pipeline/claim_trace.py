"""Lines of the dispatch trace that a claim writes: its cause, the claiming node, the addresses."""

from collections.abc import Mapping
from functools import lru_cache

from app.clock import Millis
from app.domain.enums import RouteStrategy, TriggerType
from app.domain.executors.draining import is_drained, trace_all_drained, trace_drained
from app.domain.runs.request_ids import request_of
from app.domain.runs.sharding import Shard
from app.domain.runs.trace_templates import (
    CLAIMED_AFTER,
    CLAIMED_AGAIN,
    CLAIMED_BEFORE,
    ENTERED,
    ENTERED_MORE,
    FORCED,
    GROUP_GONE,
    NONE_ENTERED,
    NONE_REGISTERED,
    NONE_REGISTERED_SINCE,
    NOT_FILLED,
    REGISTERED,
    REGISTERED_MORE,
    REQUEST,
    ROUTE,
    ROUTE_SHARD,
    SENT_AGAIN,
    TRIGGER,
    TRIGGER_SEEN,
    TRIGGERING,
    fill,
    write,
)
from app.domain.runs.trigger_report import format_instant
from app.domain.text.texts import Text
from app.pipeline.group_candidates import GroupCandidates, addresses_for, fixed_address, is_restricted
from app.pipeline.route import RoutedFire
from app.store.fires.queue import PendingFire

#: addresses shown in a trace
TRACE_ADDRESSES = 50
#: lines of each kind that are kept: most runs of a claim have the same
LINES_KEPT = 256


def trace_claim(
    routed_fire: RoutedFire, *, node: str, zone: str, now_ms: Millis, admission: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the first lines of a run's trace, or the lines that a repeated claim adds.

    ``admission``: lines about its limits.
    """
    fire, job = routed_fire.fire, routed_fire.job
    drained_lines = _drained_lines(fire, routed_fire.candidates)
    if fire.log_id is not None and fire.attempt > 0:
        claim_line = write(CLAIMED_AGAIN, instant=format_instant(now_ms, zone), node=node)
        return (write(SENT_AGAIN, n=fire.attempt + 1), claim_line, *drained_lines)
    request = request_of(fire.fire_key)
    return (
        trace_trigger(TriggerType(fire.trigger_type), fire.due_time, zone, seen_by=fire.owner),
        *([write(REQUEST, request=request)] if request else ()),
        _claimed_line(now_ms, now_ms - fire.due_time, zone, node),
        *admission,
        *([FORCED.msgid] if fire.admitted_ms and _is_forced(fire) else ()),
        _addresses_line(
            routed_fire.addresses, is_manual=bool(fire.address_list) or routed_fire.candidates.is_manual
        ),
        *drained_lines,
        _route_line(
            routed_fire.route,
            job.executor_block_strategy,
            routed_fire.retries,
            routed_fire.shard,
            job.executor_timeout,
        ),
        TRIGGERING,
    )


def _is_forced(fire: PendingFire) -> bool:
    """Whether a user started a run without asking its limits; else it was given back, or took a slot over."""
    has_former_slot = fire.trigger_type == TriggerType.RETRY and fire.admitted_ms < fire.due_time
    return fire.log_id is None and not fire.sharding_param and not has_former_slot


@lru_cache(LINES_KEPT)
def trace_trigger(kind: str, due_ms: Millis, zone: str, *, seen_by: str = "") -> str:
    """Return the line with the cause of a run; ``seen_by``: the node that read its instant ahead."""
    due = format_instant(due_ms, zone)
    return write(TRIGGER_SEEN if seen_by else TRIGGER, trigger=kind, instant=due, node=seen_by)


def trace_unroutable(routed_fire: RoutedFire, last_seen: Mapping[str, Millis], zone: str) -> str:
    """Return the result line of a run without an address; ``last_seen``: by AppName, of its last executor."""
    candidates, app_name = routed_fire.candidates, routed_fire.candidates.app_name
    if not app_name:
        return GROUP_GONE
    if is_restricted(routed_fire.fire):
        return fill(NONE_ENTERED, app=app_name)
    if candidates.drained_addresses:
        return trace_all_drained(app_name, len(candidates.drained_addresses))
    if (seen_ms := last_seen.get(app_name)) is None:
        return fill(NONE_REGISTERED, app=app_name)
    return fill(NONE_REGISTERED_SINCE, app=app_name, instant=format_instant(seen_ms, zone))


def trace_unfilled(reason: Text) -> str:
    """Return the result line of a run whose parameter could not be filled in."""
    return fill(NOT_FILLED, reason=reason)


@lru_cache(LINES_KEPT)
def _claimed_line(now_ms: Millis, late_ms: Millis, zone: str, node: str) -> str:
    template = CLAIMED_AFTER if late_ms >= 0 else CLAIMED_BEFORE
    return write(template, instant=format_instant(now_ms, zone), ms=abs(late_ms), node=node)


@lru_cache(LINES_KEPT)
def _addresses_line(addresses: tuple[str, ...], *, is_manual: bool) -> str:
    visible_addresses = addresses[:TRACE_ADDRESSES]
    more = len(addresses) - len(visible_addresses)
    if is_manual:
        template = ENTERED_MORE if more else ENTERED
    else:
        template = REGISTERED_MORE if more else REGISTERED
    return write(template, addresses=", ".join(visible_addresses), n=more)


@lru_cache(LINES_KEPT)
def _route_line(
    route: RouteStrategy, block: str | None, retries: int, shard: Shard | None, timeout_s: int
) -> str:
    template = ROUTE_SHARD if shard else ROUTE
    return write(template, route=route, block=block, n=retries, shard=shard, seconds=timeout_s)


def _drained_lines(fire: PendingFire, candidates: GroupCandidates) -> tuple[str, ...]:
    if not candidates.bare_drained:
        return ()
    if is_restricted(fire):
        addresses = addresses_for(fire, candidates)
        drained_addresses = [address for address in addresses if is_drained(address, candidates.bare_drained)]
        return trace_drained(drained_addresses, are_entered=True)
    if fire.address is None or fire.attempt == 0:
        return trace_drained(candidates.drained_addresses)
    return () if fixed_address(fire, candidates) else trace_drained([fire.address])
