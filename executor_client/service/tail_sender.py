"""Tail sender: gives consoles that announce it the last lines of the logs of runs that a stop ended."""

import logging
import threading
from collections.abc import Sequence

from executor_client.logs.reading import LogReader
from executor_client.service.admin_client import AdminClient
from executor_client.wire.clock import monotonic_s
from executor_client.wire.errors import AdminUnreachable
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.log_tails import TAIL_ACTION, LogTail, wanted_line
from executor_client.wire.protocol import SUCCESS, LogRequest, RunRequest

#: longest time for all tails, in seconds
TAILS_S = 2.0

logger = logging.getLogger(__name__)


def send_tails(runs: Sequence[RunRequest], reader: LogReader, admins: Sequence[AdminClient]) -> None:
    """Send what consoles lack of the logs of these runs, in TAILS_S at most."""
    takers = [admin for admin in admins if admin.takes_tails]
    if not runs or not takers:
        return
    until_s = monotonic_s() + TAILS_S
    # A console that hangs must not hold the stop up.
    thread = threading.Thread(
        target=_send_all, args=(runs, reader, takers, until_s), name="log-tails", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:  # no new threads while Python exits
        return
    thread.join(TAILS_S)


def _send_all(
    runs: Sequence[RunRequest], reader: LogReader, admins: Sequence[AdminClient], until_s: float
) -> None:
    for admin in admins:
        try:
            counts = [_send(run, reader, admin, until_s) for run in runs]
        except AdminUnreachable as exc:
            logger.warning("log tails not delivered error=%s", exc)
            continue
        finally:
            admin.close()
        logger.info("log tails sent admin=%s lines=%s", admin.address, sum(counts))
        return


def _send(run: RunRequest, reader: LogReader, admin: AdminClient, until_s: float) -> int:
    """Send the lines of a log from the one on that the console wants; return how many."""
    first, lines, count = 1, tuple[str, ...](), 0
    while monotonic_s() < until_s:
        tail = LogTail(run.log_id, run.log_date_time, first, lines)
        reply = admin.call(TAIL_ACTION, dump_json(tail.to_wire()))
        next_line = wanted_line(reply.content) if reply.code == SUCCESS else 0
        count += len(lines) if next_line > first else 0
        if not next_line or (lines and next_line <= first):
            break
        page = reader.read(LogRequest(run.log_id, run.log_date_time, next_line))
        if page.to_line_num < next_line:
            break
        first, lines = next_line, tuple(page.log_content.removesuffix("\n").split("\n"))
    return count
