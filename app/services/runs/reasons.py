"""Reasons of the runs of a list."""

from collections.abc import Iterable
from typing import Protocol

from sqlalchemy.orm import Session

from app.domain.runs.reason import Messages, find_reason, has_reason
from app.store.runs import messages as run_messages


class Run(Protocol):
    """What a list has read of a run."""

    @property
    def id(self) -> int: ...
    @property
    def trigger_code(self) -> int: ...
    @property
    def handle_code(self) -> int: ...


def find_reasons(session: Session, runs: Iterable[Run]) -> dict[int, str]:
    """Return log id -> why the run failed or waits, in English, for those of the runs that did.

    One statement, which reads a bounded part of each message; none if all runs succeeded or are running.
    """
    codes = {run.id: (run.trigger_code, run.handle_code) for run in runs}
    unclear = [log_id for log_id, both in codes.items() if has_reason(*both)]
    messages = run_messages.find_messages(session, unclear)
    return {log_id: find_reason(*codes[log_id], messages.get(log_id, Messages())) for log_id in unclear}
