"""STUB until limapi is merged."""
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WaitingRun:
    id: str
    job_id: int
    group_id: int
    due_ms: int
    logical_ms: int
    trigger_type: str
    priority: int
    position: int
    waits_for: Any = None
    limit_key: str = ""


def list_waiting(session: Any, *, actor: Any, group_id: int = 0, job_id: int = 0, limit_id: int = 0, after: Any = None, limit: int = 50) -> Any:
    return [], None
