"""Run outcome: one word for both codes of a log row. Source: docs/reference/scheduling.md, section 6.2."""

from app.domain.enums import HandleCode, TriggerCode

#: outcomes of runs that have not ended
OPEN = frozenset({"running", "sending"})
_SENT = {
    int(TriggerCode.NONE): "sending",
    int(TriggerCode.ACCEPTED): "running",
    int(TriggerCode.UNRESOLVED): "unresolved",
}


def outcome_of(trigger_code: int, handle_code: int, killed: int = 0) -> str:
    """Return success, failed, timeout, killed, refused, unresolved, running or sending."""
    if handle_code == HandleCode.SUCCESS:
        return "success"
    if handle_code == HandleCode.TIMEOUT:
        return "timeout"
    if handle_code != HandleCode.NONE:
        return "killed" if killed else "failed"
    return _SENT.get(trigger_code, "refused")
