"""Logging setup, shared by console and workers: lines of text or JSON objects, with the id of the request.

A message is an event and its fields, ``run sent log_id=%s``. As text, a field with blanks is a JSON string;
as JSON, the fields are members of the object too, with the types of their arguments.
"""

import copy
import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

#: libraries that log more than an operator needs
QUIET = ("asyncio", "waitress.queue", "alembic.runtime.plugins")

#: libraries that log secrets, such as the URL of a channel, or each try; their failures are return values
SILENT = ("apprise", "urllib3")
#: logger of the access log, which is independent of the level
ACCESS = "access"
#: set in the WSGI environment of a request to the name of its user, for the access log
USER = "xxl_job.user"
#: values of XXL_JOB_LOG_FORMAT
TEXT, JSON = "text", "json"

#: id of the request this thread or asyncio task works for; empty: none
request_id: ContextVar[str] = ContextVar("request_id", default="")

#: placeholders of a message with the names of their fields: ``log_id=%s``; ``%%`` is none
_PLACEHOLDER = re.compile(r"(?:(\w+)=)?%[-+ #0]*[\d.]*([a-zA-Z%])")
_PLAIN = (str, int, float, bool, type(None))
#: characters that make a text ambiguous behind ``key=``, or no character
_AMBIGUOUS = re.compile(r'[\s"=]|^$')


class QuotedText(str):
    """Text from outside, such as a user name: a JSON string in a line of text, itself in a JSON object."""

    __slots__ = ()

    def __str__(self) -> str:
        return json.dumps(str.__str__(self))


class _TextFormatter(logging.Formatter):
    """Formatter that keeps a record on one line, so that a message cannot forge another record."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(_quote_fields(record))
        if request := request_id.get():
            head, newline, rest = text.partition("\n") if record.exc_info else (text, "", "")
            text = f"{head} request={request}{newline}{rest}"
        if record.exc_info:
            return text
        return text.replace("\r", "\\r").replace("\n", "\\n")


def _quote_fields(record: logging.LogRecord) -> logging.LogRecord:
    """Return the record with ambiguous fields as JSON strings, so that ``key=value`` can be parsed."""
    if not isinstance(record.args, tuple):
        return record
    record_copy = copy.copy(record)
    record_copy.args = tuple(
        _quote(value) if field[1] and field[2] == "s" else value
        for field, value in zip(_fields(record), record.args, strict=False)
    )
    return record_copy


def _quote(value: Any) -> Any:
    if isinstance(value, (int, float, QuotedText)):
        return value
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if _AMBIGUOUS.search(text) else text


class _JsonFormatter(logging.Formatter):
    """Formatter that makes one JSON object of a record, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": _timestamp(record.created),
            "level": record.levelname,
            "logger": record.name,
            "process": record.processName,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        if request := request_id.get():
            entry["request"] = request
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(
            entry | {name: value for name, value in fields_of(record).items() if name not in entry}
        )


def _timestamp(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields a record's message names: ``log_id=%s`` and 7 make ``{"log_id": 7}``."""
    if not isinstance(record.args, tuple):
        return {}
    pairs = zip(_fields(record), record.args, strict=False)
    return {field[1]: _plain(value) for field, value in pairs if field[1]}


def _fields(record: logging.LogRecord) -> list[re.Match[str]]:
    """Return the placeholders of a message: the name of the field, if it has one, and the conversion."""
    return [match for match in _PLACEHOLDER.finditer(str(record.msg)) if match[2] != "%"]


def _plain(value: Any) -> Any:
    if isinstance(value, QuotedText):
        return str.__str__(value)
    return value if isinstance(value, _PLAIN) else str(value)


def formatter_of(form: str) -> logging.Formatter:
    """Return the formatter of a log format."""
    text = _TextFormatter("%(asctime)s %(levelname)-7s %(processName)s/%(threadName)s %(name)s %(message)s")
    return _JsonFormatter() if form == JSON else text


def set_up_logging(level: str, form: str = TEXT) -> None:
    """Log records of ``level`` and above to standard error, as lines of ``TEXT`` or ``JSON``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter_of(form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger(ACCESS).setLevel(logging.INFO)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
