"""Wire protocol between admin and executor, for both sides: requests, replies, codes, header names, messages.

Standard library only. Output is the common denominator of XXL-JOB 2.2 to 3.4. Parsing is lenient: numeric
strings count as numbers, absent and null fields become 0 or "", unknown fields are ignored; unreadable input
raises ``ValueError`` with the reason. Times are UTC epoch milliseconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from executor_client.wire.lenient_json import (
    Unreadable,
    as_text,
    first_of,
    load_json,
    long_field,
    long_or,
    object_of,
    text_field,
    whole_number,
)
from executor_client.wire.run_reports import usable_checkpoint

TOKEN_HEADER = "XXL-JOB-ACCESS-TOKEN"
APPNAME_HEADER = "XXL-JOB-APPNAME"
#: extension of this project: capabilities of an executor, ``durable-dedup,boot=5f0c…``
CAPABILITIES_HEADER = "X-Exec-Capabilities"
#: names of handlers, sent with a registration: percent-encoded, separated by commas
HANDLERS_HEADER = "X-Exec-Handlers"
#: characters of that header; names beyond are left out
HANDLERS_MAX = 4_000
#: characters of the digest of the schemas
SCHEMAS_DIGEST = 16
CONTENT_TYPE = "application/json;charset=UTF-8"
#: the only ``registryGroup`` that executors use
REGISTRY_GROUP = "EXECUTOR"

SUCCESS = 200
FAIL = 500
#: code of a job result, never of a reply
TIMEOUT = 502

MSG_BAD_TOKEN = "The access token is wrong."
#: ours; XXL-JOB sends the same message for both
MSG_NO_TOKEN = "No access token was given."
#: ours; ends the message of a refusal that has nothing to do with the request
SEND_AGAIN = "send it again"
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

#: longest excerpt of a malformed response, in characters
FOREIGN_TEXT_MAX = 4_000


class RunRequest(NamedTuple):
    """Body of ``/run``: one trigger of one job on one executor."""

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
    #: between our consoles and executors: checkpoint of the run that this one repeats, as JSON text
    checkpoint: str = ""
    #: log id of that run; 0: none
    repeats: int = 0
    #: what the run stands for; None: not sent
    logical_time: int | None = None
    #: time zone of the job, sent with the logical time
    time_zone: str = ""

    def to_wire(self) -> dict[str, Any]:
        """Return the twelve fields in XXL-JOB's order, none null: some clients reject anything else.

        Only a run for an executor of this project has more, see ``without_checkpoint`` and
        ``without_logical_time``.
        """
        own_fields: dict[str, Any] = {}
        if self.repeats:
            own_fields = {"checkpoint": self.checkpoint, "repeats": self.repeats}
        if self.logical_time is not None:
            own_fields |= {"logicalTime": self.logical_time, "timeZone": self.time_zone}
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
            **own_fields,
        }

    def without_checkpoint(self) -> "RunRequest":
        """Return the run for an executor that does not announce that it takes checkpoints."""
        return self._replace(checkpoint="", repeats=0) if self.repeats else self

    def without_logical_time(self) -> "RunRequest":
        """Return the run for an executor that does not announce that it takes logical times."""
        return self if self.logical_time is None else self._replace(logical_time=None, time_zone="")

    @classmethod
    def from_wire(cls, value: Any) -> "RunRequest":
        """Parse a trigger; raise ``ValueError`` for a field of the wrong type."""
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
            checkpoint=usable_checkpoint(fields.get("checkpoint")) or "",
            repeats=long_field(fields, "repeats"),
            logical_time=None if fields.get("logicalTime") is None else long_field(fields, "logicalTime"),
            time_zone=text_field(fields, "timeZone"),
        )


@dataclass(frozen=True, slots=True)
class RegistryRequest:
    """Body of ``/api/registry`` and ``/api/registryRemove``."""

    registry_group: str
    #: the app name
    registry_key: str
    #: base URL of the executor, kept verbatim
    registry_value: str
    #: handler -> JSON Schema of its parameters, for consoles that request it; None: not sent
    schemas: dict[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the three fields, and the schemas if there are any."""
        schemas = {"handlerSchemas": self.schemas} if self.schemas is not None else {}
        return {
            "registryGroup": self.registry_group,
            "registryKey": self.registry_key,
            "registryValue": self.registry_value,
            **schemas,
        }

    @classmethod
    def from_wire(cls, value: Any) -> "RegistryRequest":
        """Parse a registration; missing fields are "", for the caller to reject."""
        fields = object_of(value, "the registration")
        schemas = fields.get("handlerSchemas")
        return cls(
            text_field(fields, "registryGroup"),
            text_field(fields, "registryKey"),
            text_field(fields, "registryValue"),
            schemas if isinstance(schemas, dict) else None,
        )


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Body of ``/log``: a run and the first line to return, counted from 1."""

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
        """Parse the request in either spelling."""
        fields = object_of(value, "the log request")
        return cls(
            long_field(fields, "logId"),
            long_field(fields, "logDateTim", "logDateTime"),
            long_field(fields, "fromLineNum"),
        )


@dataclass(frozen=True, slots=True)
class LogResult:
    """Page of a run's log; without new lines ``from_line_num > to_line_num`` or the text is empty."""

    from_line_num: int
    #: number of the last line returned
    to_line_num: int
    log_content: str
    #: Java executors never set it while the file exists
    is_end: bool

    def to_wire(self) -> dict[str, Any]:
        """Return the payload; the flag is ``isEnd`` on the wire."""
        return {
            "fromLineNum": self.from_line_num,
            "toLineNum": self.to_line_num,
            "logContent": self.log_content,
            "isEnd": self.is_end,
        }

    @classmethod
    def from_wire(cls, value: Any, *, from_line_num: int = 1) -> "LogResult":
        """Parse the payload of any executor: an object, a bare string, or null."""
        fields = value if isinstance(value, dict) else {"logContent": value}
        content = "" if fields.get("logContent") is None else as_text(fields["logContent"])
        lines = content.count("\n") + (not content.endswith("\n") and content != "")
        start = long_or(fields, "fromLineNum", from_line_num)
        end = long_or(fields, "toLineNum", max(start, 1) + lines - 1)
        return cls(start, end, content, first_of(fields, "isEnd", "end") in (True, "true"))


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Body of ``/idleBeat`` and ``/kill``: a job, not a run."""

    job_id: int

    def to_wire(self) -> dict[str, Any]:
        """Return the one field."""
        return {"jobId": self.job_id}

    @classmethod
    def from_wire(cls, value: Any) -> "JobRequest":
        """Parse the job id."""
        return cls(long_field(object_of(value, "the request"), "jobId"))


@dataclass(frozen=True, slots=True)
class Reply:
    """Envelope of every response, in both directions."""

    code: int
    msg: str | None = None
    #: payload; ``content`` up to 3.2, ``data`` since 3.3
    content: Any = None
    #: False: the response was not an envelope with an integer code; the parser set ``code`` and ``msg``
    well_formed: bool = field(default=True, compare=False)

    def to_wire(self, *, with_data: bool = True) -> dict[str, Any]:
        """Return ``code, msg, content`` in this order, then the payload again as ``data`` for 3.3 and up."""
        fields = {"code": self.code, "msg": self.msg, "content": self.content}
        return {**fields, "data": self.content} if with_data else fields

    @classmethod
    def parse(cls, status: int, body: bytes) -> "Reply":
        """Parse a response; without an envelope and integer ``code`` it is a failure with its text."""
        text = body[: FOREIGN_TEXT_MAX * 4].decode("utf-8", "replace").strip()[:FOREIGN_TEXT_MAX]
        try:
            value = load_json(body)
            if not isinstance(value, dict) or value.get("code") in (None, ""):
                raise Unreadable("no code")
            code = whole_number(value["code"], "code")
        except ValueError:
            value, code = {}, None
        if status != SUCCESS:  # the executor litert sends its code as the HTTP status too
            detail = f": {as_text(text)}" if text else ""
            return cls(FAIL, f"HTTP status {status}{detail}", well_formed=code == status)
        if code is None:
            return cls(
                FAIL,
                f"no usable answer: {as_text(text)}" if text else "the answer is empty",
                well_formed=False,
            )
        msg = value.get("msg")
        return cls(code, None if msg is None else as_text(msg), first_of(value, "content", "data"))


def is_repeated_trigger(reply: Reply) -> bool:
    """Return whether an executor rejected a run as a duplicate: that proves that it was accepted."""
    return reply.code == FAIL and (reply.msg or "").startswith(("repeate trigger job", "repeat trigger job"))


def to_handlers_header(names: Iterable[str]) -> str:
    """Return the value of HANDLERS_HEADER."""
    return _whole_names(",".join(quote(name, safe="") for name in names))


def from_handlers_header(value: str | None) -> list[str]:
    """Return the names in HANDLERS_HEADER; one that cannot be read is left out."""
    names = (unquote(word.strip(), errors="replace") for word in _whole_names(value or "").split(","))
    return [name for name in names if name and name.isprintable() and "\ufffd" not in name]


def _whole_names(value: str) -> str:
    return value if len(value) <= HANDLERS_MAX else value[: HANDLERS_MAX + 1].rpartition(",")[0]
