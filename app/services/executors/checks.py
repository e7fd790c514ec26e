"""Connection checks: probe the instances of a group, with its token and with a wrong one."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor
from app.errors import ExecutorUnreachable
from app.executors.calls import NO_TOKEN, Peer, refusal_of, refuses_token
from app.executors.gateway import Gateway
from app.pipeline.group_addresses import find_foreign
from app.services.auditing import audit
from app.services.executors import groups
from app.services.executors.callers import LEFT_GROUP, Caller
from app.services.executors.instances import find_instances

#: instances probed by one check, and how many at a time
ADDRESSES_MAX, AT_A_TIME = 40, 8
TIMEOUT_S = 3.0
#: action in the audit
ACTION = "group.check"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of the check of one instance."""

    address: str
    #: None: the probe failed, see ``reason``
    took_ms: Millis | None
    reason: str = ""
    #: whether it accepted a wrong token, so that anyone who reaches it can run code there
    is_open: bool = False


def check_group(group_id: int, *, actor: Actor, caller: Caller, now_ms: Millis) -> list[CheckResult]:
    """Probe every instance of a group under one permit. Opens its own transactions, none across a request.

    Raises TooManyCalls.
    """
    with read_scope() as session:
        group = groups.get_group(session, group_id, actor=actor)
        instances = find_instances(session, group, now_ms=now_ms)
        addresses = [instance.address for instance in instances.rows if instance.is_known][:ADDRESSES_MAX]
        probes = {group_id: addresses} if group.tokens else {}
        foreign = find_foreign(session, probes, {group_id: group}, now_ms=now_ms).get(group_id, ())
        tokens, app_name = group.tokens or caller.tokens, group.app_name
    with caller.permit() as permit:
        peers = [
            Peer(address, app_name, *(NO_TOKEN if address in foreign else tokens)) for address in addresses
        ]
        with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="check") as pool:
            results = list(pool.map(lambda peer: _check(permit.gateway, peer), peers))
    online = [result.address for result in results if result.took_ms is not None]
    offline = [result.address for result in results if result.took_ms is None]
    changes = {
        "addresses": len(results),
        "answered": len(online),
        "reached": online,
        "unreached": offline,
    }
    with session_scope() as session:
        audit.record(session, ACTION, actor=actor, now_ms=now_ms, target=("group", group_id), changes=changes)
    return results


def _check(gateway: Gateway, peer: Peer) -> CheckResult:
    start_s = time.monotonic()
    try:
        reply = gateway.beat(peer, timeout_s=TIMEOUT_S)
    except ExecutorUnreachable as exc:
        return CheckResult(peer.address, None, exc.reason)
    took_ms = int((time.monotonic() - start_s) * 1000)
    if not peer.token and refuses_token(reply):
        return CheckResult(peer.address, None, LEFT_GROUP)
    if refusal := refusal_of(reply):
        return CheckResult(peer.address, None, refusal)
    return CheckResult(peer.address, took_ms, is_open=gateway.accepts_any_token(peer, timeout_s=TIMEOUT_S))
