"""The wire between admin and executor, for both sides: requests, replies, codes, header names, texts.

Only the standard library. Writing sends the common denominator of XXL-JOB 2.2 to 3.4; reading is lenient: numeric strings count
as numbers, absent and null alike become 0 or "", unknown fields are ignored. What cannot be read at all raises ``ValueError`` with a
reason. Times are UTC epoch milliseconds.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from executor_client.lenient_json import (
    Unreadable,
    as_text,
    first_of,
    load_json,
    long_field,
    object_of,
    text_field,
    whole_number,
)

TOKEN_HEADER = "XXL-JOB-ACCESS-TOKEN"
APPNAME_HEADER = "XXL-JOB-APPNAME"
#: our own executors announce what they can do, as in ``durable-dedup,boot=5f0c…``; others send nothing
CAPABILITIES_HEADER = "X-Exec-Capabilities"
CONTENT_TYPE = "application/json;charset=UTF-8"
#: the only ``registryGroup`` executors use
REGISTRY_GROUP = "EXECUTOR"

SUCCESS = 200
FAIL = 500
#: a job result only, never the code of a reply
TIMEOUT = 502

MSG_BAD_TOKEN = "The access token is wrong."
MSG_METHOD = "invalid request, HttpMethod not support."
MSG_URI_EMPTY = "invalid request, uri-mapping empty."
MSG_URI_NOT_FOUND = "invalid request, uri-mapping({}) not found."
MSG_REQUEST_ERROR = "request error:"
MSG_ILLEGAL_ARGUMENT = "Illegal Argument."
MSG_HANDLER_NOT_FOUND = "job handler [{}] not found."
MSG_GLUE_NOT_VALID = "glueType[{}] is not valid."
MSG_BUSY = "job thread is running or has trigger queue."
MSG_ALREADY_KILLED = "job thread already killed."
MSG_DISCARD_LATER = "block strategy effect\uff1aDiscard Later"
MSG_COVER_EARLY = "block strategy effect\uff1aCover Early"
MSG_TIMEOUT = "job execute timeout "
MSG_LOG_NOT_FOUND = "readLog fail, logFile not found"
MSG_LOG_NOT_EXISTS = "readLog fail, logFile not exists"

#: what remains of a foreign answer that is no envelope, in characters
FOREIGN_TEXT_MAX = 4_000


class RunRequest(NamedTuple):
    """The body of ``/run``: one trigger of one job on one executor."""

    job_id: int
    executor_handler: str
    executor_params: str
    executor_block_strategy: str
    #: seconds; 0 means no limit
    executor_timeout: int
    log_id: int
    log_date_time: int
    glue_type: str
    glue_source: str
    glue_updatetime: int
    broadcast_index: int
    broadcast_total: int

    def to_wire(self) -> dict[str, Any]:
        """Return the twelve fields in the original's order, none null: some clients refuse anything else."""
        return {
            "jobId": self.job_id,
            "executorHandler": self.executor_handler,
            "executorParams": self.executor_params,
            "executorBlockStrategy": self.executor_block_strategy,
            "executorTimeout": self.executor_timeout,
            "logId": self.log_id,
            "logDateTime": self.log_date_time,
            "glueType": self.glue_type,
            "glueSource": self.glue_source,
            "glueUpdatetime": self.glue_updatetime,
            "broadcastIndex": self.broadcast_index,
            "broadcastTotal": self.broadcast_total,
        }

    @classmethod
    def from_wire(cls, value: Any) -> "RunRequest":
        """Read a trigger; raise ``ValueError`` where a field has the wrong type."""
        fields = object_of(value, "the trigger")
        return cls(
            job_id=long_field(fields, "jobId"),
            executor_handler=text_field(fields, "executorHandler"),
            executor_params=text_field(fields, "executorParams"),
            executor_block_strategy=text_field(fields, "executorBlockStrategy"),
            executor_timeout=long_field(fields, "executorTimeout"),
            log_id=long_field(fields, "logId"),
            log_date_time=long_field(fields, "logDateTime", "logDateTim"),
            glue_type=text_field(fields, "glueType"),
            glue_source=text_field(fields, "glueSource"),
            glue_updatetime=long_field(fields, "glueUpdatetime"),
            broadcast_index=long_field(fields, "broadcastIndex"),
            broadcast_total=long_field(fields, "broadcastTotal"),
        )


@dataclass(frozen=True, slots=True)
class RegistryRequest:
    """The body of ``/api/registry`` and ``/api/registryRemove``."""

    registry_group: str
    #: the app name
    registry_key: str
    #: base URL of the executor, kept verbatim
    registry_value: str

    def to_wire(self) -> dict[str, Any]:
        """Return the three fields."""
        return {
            "registryGroup": self.registry_group,
            "registryKey": self.registry_key,
            "registryValue": self.registry_value,
        }

    @classmethod
    def from_wire(cls, value: Any) -> "RegistryRequest":
        """Read a registration; missing fields are "", for the caller to refuse."""
        fields = object_of(value, "the registration")
        return cls(
            text_field(fields, "registryGroup"),
            text_field(fields, "registryKey"),
            text_field(fields, "registryValue"),
        )


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The body of ``/log``: which run, and from which line on (1-based)."""

    log_id: int
    log_date_time: int
    from_line_num: int

    def to_wire(self) -> dict[str, Any]:
        """Return the request with both spellings of the time."""
        return {
            "logDateTim": self.log_date_time,
            "logDateTime": self.log_date_time,
            "logId": self.log_id,
            "fromLineNum": self.from_line_num,
        }

    @classmethod
    def from_wire(cls, value: Any) -> "LogRequest":
        """Read the request in either spelling."""
        fields = object_of(value, "the log request")
        return cls(
            long_field(fields, "logId"),
            long_field(fields, "logDateTim", "logDateTime"),
            long_field(fields, "fromLineNum"),
        )


@dataclass(frozen=True, slots=True)
class LogResult:
    """A piece of a run's log; nothing new is ``from_line_num > to_line_num``, or an empty text."""

    from_line_num: int
    #: number of the last line handed over
    to_line_num: int
    log_content: str
    #: Java never says so while the file exists
    is_end: bool

    def to_wire(self) -> dict[str, Any]:
        """Return the payload as executors send it: the flag is ``isEnd``."""
        return {
            "fromLineNum": self.from_line_num,
            "toLineNum": self.to_line_num,
            "logContent": self.log_content,
            "isEnd": self.is_end,
        }

    @classmethod
    def from_wire(cls, value: Any, *, from_line_num: int = 1) -> "LogResult":
        """Read the payload of any executor: an object, a bare text, or nothing at all."""
        fields = value if isinstance(value, dict) else {"logContent": value}
        content = "" if fields.get("logContent") is None else as_text(fields["logContent"])
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        start = long_field(fields, "fromLineNum") if fields.get("fromLineNum") is not None else from_line_num
        end = (
            long_field(fields, "toLineNum")
            if fields.get("toLineNum") is not None
            else max(start, 1) + lines - 1
        )
        return cls(start, end, content, first_of(fields, "isEnd", "end") in (True, "true"))


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The body of ``/idleBeat`` and ``/kill``: a job, not a run."""

    job_id: int

    def to_wire(self) -> dict[str, Any]:
        """Return the one field."""
        return {"jobId": self.job_id}

    @classmethod
    def from_wire(cls, value: Any) -> "JobRequest":
        """Read the job id."""
        return cls(long_field(object_of(value, "the request"), "jobId"))


@dataclass(frozen=True, slots=True)
class Reply:
    """The envelope of every answer in both directions."""

    code: int
    msg: str | None = None
    #: payload: ``content`` up to 3.2, ``data`` from 3.3 on
    content: Any = None
    #: False: what came is no envelope with an integer code, so ``code`` and ``msg`` are ours
    well_formed: bool = field(default=True, compare=False)

    def to_wire(self, *, with_data: bool = True) -> dict[str, Any]:
        """Return ``code, msg, content`` in this order, then the payload again as ``data`` for 3.3 and later."""
        fields = {"code": self.code, "msg": self.msg, "content": self.content}
        return {**fields, "data": self.content} if with_data else fields

    @classmethod
    def parse(cls, status: int, body: bytes) -> "Reply":
        """Read an answer; whatever is no envelope with an integer ``code`` is a failure that carries its text."""
        text = body[: FOREIGN_TEXT_MAX * 4].decode("utf-8", "replace").strip()[:FOREIGN_TEXT_MAX]
        try:
            value = load_json(body)
            if not isinstance(value, dict) or value.get("code") in (None, ""):
                raise Unreadable("no code")
            code = whole_number(value["code"], "code")
        except ValueError:
            value, code = {}, None
        if status != SUCCESS:  # litert repeats its code as the HTTP status
            return cls(FAIL, f"HTTP status {status}: {as_text(text)}", well_formed=code == status)
        if code is None:
            return cls(
                FAIL,
                f"no usable answer: {as_text(text)}" if text else "the answer is empty",
                well_formed=False,
            )
        msg = value.get("msg")
        return cls(code, None if msg is None else as_text(msg), first_of(value, "content", "data"))


def is_repeated_trigger(reply: Reply) -> bool:
    """Tell whether an executor refused a run because it already holds this log id: that proves acceptance."""
    return reply.code == FAIL and (reply.msg or "").startswith(("repeate trigger job", "repeat trigger job"))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an executor announces in ``CAPABILITIES_HEADER``; foreign executors announce nothing."""

    #: a log id is started at most once, also across restarts
    durable_dedup: bool = False
    #: changes with every start of the process; "" if unknown
    boot_id: str = ""

    def to_header(self) -> str:
        """Return the header's value, as in ``durable-dedup,boot=5f0c…``."""
        parts = ["durable-dedup"] if self.durable_dedup else []
        return ",".join([*parts, f"boot={self.boot_id}"] if self.boot_id else parts)

    @classmethod
    def from_header(cls, value: str | None) -> "Capabilities":
        """Read the header; unknown words are ignored."""
        words = [word.strip() for word in (value or "").split(",")]
        boots = [word[len("boot=") :] for word in words if word.startswith("boot=")]
        return cls(
            "durable-dedup" in words,
            boots[0][:64] if boots and boots[0].isascii() and boots[0].isprintable() else "",
        )
