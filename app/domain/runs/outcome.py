"""Run outcome: one word for both codes of a log row. Source: docs/reference/scheduling.md, section 6.2."""

from collections.abc import Collection

from app.domain.enums import HandleCode, TriggerCode

#: outcomes of runs that have not ended
OPEN = frozenset({"running", "sending"})
#: outcome -> state, as programs read it
STATES = {
    "sending": "waiting",
    "running": "running",
    "success": "succeeded",
    "failed": "failed",
    "timeout": "timed_out",
    "killed": "killed",
    "refused": "not_started",
    "unresolved": "unresolved",
}
#: worst state first: that of a broadcast whose shards have ended
_WORST = ("unresolved", "not_started", "failed", "timed_out", "killed", "succeeded")
#: states of runs that have ended
ENDED = frozenset(_WORST)
_SENT = {
    int(TriggerCode.NONE): "sending",
    int(TriggerCode.ACCEPTED): "running",
    int(TriggerCode.UNRESOLVED): "unresolved",
}


def outcome_of(trigger_code: int, handle_code: int, kill: int = 0) -> str:
    """Return success, failed, timeout, killed, refused, unresolved, running or sending."""
    if handle_code == HandleCode.SUCCESS:
        return "success"
    if handle_code == HandleCode.TIMEOUT:
        return "timeout"
    if handle_code != HandleCode.NONE:
        return "killed" if kill else "failed"
    return _SENT.get(trigger_code, "refused")


def state_of(trigger_code: int, handle_code: int, kill: int = 0) -> str:
    """Return one of the values of STATES."""
    return STATES[outcome_of(trigger_code, handle_code, kill)]


def state_of_all(states: Collection[str], *, is_waiting: bool) -> str:
    """Return the state of a broadcast from those of its shards; ``is_waiting``: there are more to start."""
    ended_states = ENDED & set(states)
    if is_waiting or not ENDED.issuperset(states):
        return "running" if ended_states or "running" in states else "waiting"
    return worst_state(ended_states)


def worst_state(states: Collection[str]) -> str:
    """Return the worst of the states of runs that have ended; without any that of one that did not start."""
    return next((state for state in _WORST if state in states), "not_started")
