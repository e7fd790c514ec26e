"""Rules of promises and escalations that their models in JSON cannot check."""

import json
from collections.abc import Callable
from typing import Any

from app.domain.enums import PromiseKind
from app.domain.promises.promise import applies
from app.domain.text.texts import N_
from app.errors import InvalidInput


def check_promises(text: str, schedule_type: str) -> None:
    """Raise InvalidInput for a promise about an instant of a schedule that has none."""
    for number, promise in enumerate(_members(text, list)):
        kind = str(promise.get("kind")) if isinstance(promise, dict) else ""
        if kind in list(PromiseKind) and not applies(PromiseKind(kind), schedule_type):
            raise InvalidInput(
                f"promises.{number}.kind",
                N_(
                    "%(kind)s needs times that follow from the schedule, which %(schedule)s does not have",
                    kind=kind,
                    schedule=schedule_type,
                ),
            )


def check_escalation(text: str, has_channel: Callable[[str], bool]) -> None:
    """Raise InvalidInput for an escalation to a channel that does not exist."""
    channel = _members(text, dict).get("channel")
    if isinstance(channel, str) and channel and not has_channel(channel):
        raise InvalidInput("escalation.channel", N_("There is no alarm channel '%(name)s'", name=channel))


def _members(text: str, kind: type) -> Any:
    """Return the value of a JSON text; an empty one if it is of another type, which is reported elsewhere."""
    try:
        value = json.loads(text or "null")
    except (ValueError, RecursionError):
        return kind()
    return value if isinstance(value, kind) else kind()
