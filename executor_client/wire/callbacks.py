"""Callback messages: the results an executor reports, in every form of XXL-JOB 2.2 to 3.4.

Standard library only. Parsing is lenient, see ``protocol``; unreadable input raises ``ValueError``.
"""

from dataclasses import dataclass
from typing import Any

from executor_client.wire.lenient_json import (
    Unreadable,
    as_text,
    dump_json,
    first_of,
    kind_of,
    load_json,
    long_field,
    long_or,
    object_of,
    whole_number,
)
from executor_client.wire.run_reports import Progress, usable_checkpoint

#: results accepted in one request. Our client sends 50. Java sends all results that arrived during its last
#: attempt, which takes 3 s at most; the results of a failed attempt go to a file and are sent separately
ELEMENTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class CallbackItem:
    """Element of ``/api/callback``: the result of one run."""

    log_id: int
    log_date_time: int
    #: 200, 500, 502 or a handler's own code; 0 is no result. Not limited to 32 bits here
    handle_code: int
    handle_msg: str | None
    #: for consoles of this project, as JSON text, see ``run_reports``
    checkpoint: str | None = None
    progress: str | None = None

    @property
    def has_reports(self) -> bool:
        """Whether there is anything for a console of this project."""
        return self.checkpoint is not None or self.progress is not None

    def to_wire(self, *, with_reports: bool = False) -> dict[str, Any]:
        """Return the result in the spellings of all admin versions at once."""
        reports = {"checkpoint": self.checkpoint, "progress": self.progress} if with_reports else {}
        return {
            "logId": self.log_id,
            "logDateTim": self.log_date_time,
            "logDateTime": self.log_date_time,
            "handleCode": self.handle_code,
            "handleMsg": self.handle_msg,
            "executeResult": {"code": self.handle_code, "msg": self.handle_msg},
            **{name: text for name, text in reports.items() if text is not None},
        }

    @classmethod
    def from_wire(cls, value: Any) -> "CallbackItem":
        """Parse a result in any spelling; ``executeResult`` provides missing fields."""
        fields = object_of(value, "a callback element")
        execute_result = fields.get("executeResult")
        result = execute_result if isinstance(execute_result, dict) else {}
        code = whole_number(
            first_of({"own": fields.get("handleCode"), "nested": result.get("code")}, "own", "nested"),
            "handleCode",
        )
        progress = Progress.parse(fields.get("progress"))
        message = fields.get("handleMsg")
        if message is None:
            message = first_of(result, "msg", "content")
        return cls(
            log_id=long_field(fields, "logId"),
            log_date_time=long_field(fields, "logDateTim", "logDateTime"),
            handle_code=code,
            handle_msg=None if message is None else as_text(message),
            checkpoint=usable_checkpoint(fields.get("checkpoint")),
            progress=progress.to_text() if progress is not None else None,
        )


@dataclass(frozen=True, slots=True)
class MissingResult:
    """Element without a result, which ends no run."""

    #: 0 if the element names none
    log_id: int
    reason: str

    @classmethod
    def find(cls, fields: dict[str, Any], item: CallbackItem) -> "MissingResult | None":
        """Return what a readable element lacks, None if it has a result."""
        if item.handle_code != 0:
            return None
        spellings = {name.lower(): name for name in fields}
        name = spellings.get("handlecode", "handleCode")
        if name != "handleCode":
            reason = f"{name} must be spelled handleCode"
        elif fields.get(name) in (None, ""):
            reason = "no handleCode"
        else:
            reason = "handleCode 0 is no result"
        return cls(item.log_id or long_or(fields, spellings.get("logid", "logId"), 0), reason)


@dataclass(frozen=True, slots=True)
class CallbackBatch:
    """Content of a callback request: readable elements, and the reasons for the others."""

    items: tuple[CallbackItem, ...]
    #: one reason per unreadable element
    rejections: tuple[str, ...]
    #: those of ``items`` that have no result
    missing: tuple[MissingResult, ...] = ()


def parse_callbacks(body: bytes) -> CallbackBatch:
    """Parse an array of results, or the ``{"callbackList": […]}`` of 3.5; raise ``ValueError``,
    also for more than ELEMENTS_MAX.

    ``null`` counts as an empty array. Unreadable elements do not affect the others.
    """
    elements = _callback_elements(body)
    items: list[CallbackItem] = []
    rejections: list[str] = []
    missing: list[MissingResult] = []
    for element in elements:
        if element is None:
            continue
        try:
            item = CallbackItem.from_wire(element)
        except ValueError as exc:
            rejections.append(str(exc))
            continue
        items.append(item)
        if (lacking := MissingResult.find(element, item)) is not None:
            missing.append(lacking)
    return CallbackBatch(tuple(items), tuple(rejections), tuple(missing))


def _callback_elements(body: bytes) -> list[Any]:
    value = load_json(body, trailing_comma=True)
    if value is None:
        return []
    if isinstance(value, dict):
        if "callbackList" not in value:
            raise Unreadable("an array of results is expected, not an object without callbackList")
        value = value["callbackList"]
    if not isinstance(value, list):
        raise Unreadable(f"an array of results is expected, not {kind_of(value)}")
    if len(value) > ELEMENTS_MAX:
        raise Unreadable(
            f"{len(value)} results in one request, at most {ELEMENTS_MAX} are accepted; send them in several"
        )
    return value


def callback_body(items: list[CallbackItem], *, as_object: bool = False, with_reports: bool = False) -> bytes:
    """Return the body of ``/api/callback``: an array, or the object that 3.5 admins require."""
    elements = [item.to_wire(with_reports=with_reports) for item in items]
    return dump_json({"callbackList": elements} if as_object else elements)
