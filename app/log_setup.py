"""The log format, shared by console and workers."""

import logging
import sys

#: libraries that tell more than an operator wants to read
QUIET = ("asyncio", "urllib3", "waitress.queue", "alembic.runtime.plugins")

#: libraries that write what must stay secret, such as a channel's URL; what went wrong comes back from them as a value
SILENT = ("apprise",)


class _Formatter(logging.Formatter):
    """One record, one line: a line end inside a message cannot forge another record."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.exc_info:
            return text
        return text.replace("\r", "\\r").replace("\n", "\\n")


def set_up_logging(level: str) -> None:
    """Send all records from ``level`` on to standard error, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Formatter("%(asctime)s %(levelname)-7s %(processName)s/%(threadName)s %(name)s %(message)s")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name in SILENT:
        logging.getLogger(name).setLevel(logging.CRITICAL)
