"""Capabilities that executors of this project announce in ``CAPABILITIES_HEADER``.

Standard library only, for both sides.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from executor_client.wire.protocol import SCHEMAS_DIGEST, from_handlers_header
from executor_client.wire.run_reports import LAST_LINES, LOGICAL_TIME, RUN_STATE

#: word of the header with the version of the client, as ``version=0.1.0``
VERSION_WORD = "version"
#: characters of a version that are kept
VERSION_MAX = 32


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities in ``CAPABILITIES_HEADER``; only executors of this project send it."""

    #: a log id starts at most once, also across restarts
    durable_dedup: bool = False
    #: changes with every start of the process; "" if unknown
    boot_id: str = ""
    #: names of its handlers, in HANDLERS_HEADER
    handlers: tuple[str, ...] = ()
    #: takes checkpoints and reports progress, see ``run_reports``
    run_state: bool = False
    #: digest of the schemas of its handlers; "" without any
    schemas: str = ""
    #: returns the last lines of a log, see ``run_reports``
    last_lines: bool = False
    #: of the client; "" if unknown
    version: str = ""
    #: takes the logical time of a run, see ``run_reports``
    logical_time: bool = False

    @classmethod
    def of_client(cls, boot_id: str, version: str = "") -> "Capabilities":
        """Return what this client can, for its registrations and its responses alike."""
        return cls(True, boot_id, run_state=True, last_lines=True, version=version, logical_time=True)

    def to_header(self) -> str:
        """Return the header value, for example ``durable-dedup,boot=5f0c…,version=0.1.0``."""
        words = (
            "durable-dedup" if self.durable_dedup else "",
            f"boot={self.boot_id}" if self.boot_id else "",
            RUN_STATE if self.run_state else "",
            LAST_LINES if self.last_lines else "",
            f"{VERSION_WORD}={self.version}" if self.version else "",
            LOGICAL_TIME if self.logical_time else "",
            f"schemas={self.schemas}" if self.schemas else "",
        )
        return ",".join(filter(None, words))

    @classmethod
    def from_header(cls, value: str | None, handlers: str | None = None) -> "Capabilities":
        """Parse CAPABILITIES_HEADER and HANDLERS_HEADER; ignore unknown words."""
        words = [word.strip() for word in (value or "").split(",")]
        return cls(
            "durable-dedup" in words,
            _value_of("boot", words)[:64],
            tuple(from_handlers_header(handlers)),
            RUN_STATE in words,
            _value_of("schemas", words)[:SCHEMAS_DIGEST],
            LAST_LINES in words,
            _value_of(VERSION_WORD, words)[:VERSION_MAX],
            LOGICAL_TIME in words,
        )


def _value_of(name: str, words: Iterable[str]) -> str:
    """Return the value of the first ``name=value``; "" without one, or if it is unprintable."""
    values = [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]
    return values[0] if values and values[0].isascii() and values[0].isprintable() else ""
