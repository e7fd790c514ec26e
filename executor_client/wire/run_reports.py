"""Run reports: checkpoints and progress that executors report to consoles of this project.

Standard library only. Both travel as JSON text; a retry gets the checkpoint back. Consoles announce
themselves in CONSOLE_HEADER, executors with RUN_STATE in CAPABILITIES_HEADER; others get none of this.
"""

import json
import numbers
from dataclasses import dataclass
from typing import Any

from executor_client.wire.lenient_json import dump_json

#: header of our console's responses to executors that announce capabilities: CONSOLE_WORDS and words below
CONSOLE_HEADER = "X-Exec-Console"
#: capability: takes checkpoints with a run, returns progress with the log
RUN_STATE = "run-state"
#: capability: returns the last lines of a log on request
LAST_LINES = "last-lines"
#: capability: takes the logical time of a run and the time zone of its job
LOGICAL_TIME = "logical-time"
#: the console takes last lines of logs from executors that stop
LOG_TAIL = "log-tail"
#: the console requests the schemas of the handlers
SEND_SCHEMAS = "send-schemas"
#: no executor group has the AppName that registers
NO_GROUP = "no-group"

#: value of CONSOLE_HEADER without a request
CONSOLE_WORDS = f"{RUN_STATE},{LOG_TAIL}"

#: longest checkpoint as JSON text, in bytes
CHECKPOINT_MAX = 4_096
#: longest text of a progress, in characters
PROGRESS_TEXT_MAX = 100
#: largest number of a progress
PROGRESS_MAX = 10**15


def checkpoint_text(value: Any) -> str:
    """Return a checkpoint as JSON text; raise ValueError if it is not JSON or longer than CHECKPOINT_MAX."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"the checkpoint is not JSON: {exc}") from exc
    if size > CHECKPOINT_MAX:
        raise ValueError(f"the checkpoint has {size} bytes as JSON, at most {CHECKPOINT_MAX} are kept")
    return text


def usable_checkpoint(value: Any) -> str | None:
    """Return the checkpoint that was sent, None unless it is JSON text of at most CHECKPOINT_MAX bytes."""
    if not isinstance(value, str) or not value or "\x00" in value:
        return None
    try:
        json.loads(value)
        return value if len(value.encode()) <= CHECKPOINT_MAX else None
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run: ``done`` of ``total`` steps."""

    done: float
    total: float
    text: str = ""

    @property
    def percent(self) -> int:
        """Whole percent, 0 to 100; 100 only if all is done."""
        if self.total <= 0 or self.done >= self.total:
            return 100 if self.done >= self.total else 0
        return max(0, min(99, int(self.done / self.total * 100)))

    def to_text(self) -> str:
        """Return it as JSON text."""
        return dump_json({"done": self.done, "total": self.total, "text": self.text}).decode()

    @classmethod
    def of(cls, done: float, total: float, text: object = "") -> "Progress":
        """Return a progress with one short line of text; raise ValueError for what is no finite number."""
        words = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
        return cls(_number(done), _number(total), words[:PROGRESS_TEXT_MAX])

    @classmethod
    def parse(cls, value: Any) -> "Progress | None":
        """Return the progress that was sent as JSON text, None if it is unusable."""
        try:
            fields = json.loads(value) if isinstance(value, str) and len(value) <= 2_000 else None
            return cls.of(fields["done"], fields["total"], fields.get("text", "")) if fields else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def _number(value: Any) -> float:
    """Return a number of a progress, also one of NumPy; raise ValueError for others."""
    number: Any = None if isinstance(value, bool) or not isinstance(value, numbers.Real) else value
    if number is None:
        raise ValueError(f"progress(done, total) takes numbers, not {value!r}")
    if not abs(number) <= PROGRESS_MAX:  # NaN is not
        raise ValueError(f"progress(done, total) takes numbers up to {PROGRESS_MAX:,}, not {value!r}")
    return int(number) if isinstance(number, numbers.Integral) else float(number)
