"""Log tails: last lines of a run's log that an executor of this project sends while it stops.

Standard library only. Only a console that announces LOG_TAIL gets them.
"""

from dataclasses import dataclass
from typing import Any

from executor_client.wire.lenient_json import long_field, object_of, whole_number

#: action of the executor API
TAIL_ACTION = "logTail"
#: longest body of a request, in bytes
TAIL_MAX_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class LogTail:
    """Consecutive lines of a run's log; without lines it only finds out where they should begin."""

    log_id: int
    log_date_time: int
    from_line_num: int
    lines: tuple[str, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the body of the request."""
        return {
            "logId": self.log_id,
            "logDateTim": self.log_date_time,
            "fromLineNum": self.from_line_num,
            "lines": [*self.lines],
        }

    @classmethod
    def from_wire(cls, value: Any) -> "LogTail":
        """Parse the body; raises ValueError."""
        fields = object_of(value, "the log tail")
        lines = fields.get("lines") or []
        if not isinstance(lines, list) or not all(
            isinstance(line, str) and "\n" not in line for line in lines
        ):
            raise ValueError("lines is not a list of lines")
        first = long_field(fields, "fromLineNum")
        if first < 1:
            raise ValueError("fromLineNum is below 1")
        return cls(long_field(fields, "logId"), long_field(fields, "logDateTim"), first, tuple(lines))


def wanted_line(content: Any) -> int:
    """Return the line that a console wants next, from its answer; 0: none."""
    value = content.get("fromLineNum") if isinstance(content, dict) else None
    try:
        return max(whole_number(value, "fromLineNum"), 0)
    except ValueError:
        return 0
