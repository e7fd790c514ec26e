"""Logging setup, shared by console and workers."""

import logging
import sys

#: libraries that log more than an operator needs
QUIET = ("asyncio", "urllib3", "waitress.queue", "alembic.runtime.plugins")

#: libraries that log secrets, such as the URL of a channel; their failures are return values
SILENT = ("apprise",)


class _Formatter(logging.Formatter):
    """Formatter that keeps a record on one line, so that a message cannot forge another record."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.exc_info:
            return text
        return text.replace("\r", "\\r").replace("\n", "\\n")


def set_up_logging(level: str) -> None:
    """Log records of ``level`` and above to standard error, one line each."""
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
