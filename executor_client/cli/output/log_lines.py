"""Output of run logs: lines for people, objects with line and text for programs; of a broadcast by shard."""

from collections.abc import Iterator

import click

from executor_client.api.client import ApiClient
from executor_client.api.errors import ApiRefused, Conflict
from executor_client.api.session import Item
from executor_client.cli.invocation import Invocation
from executor_client.cli.output.output import note, show_list
from executor_client.config.terminal import printable_log_line
from executor_client.wire.clock import monotonic_s

#: seconds between two reads of the logs, in which the console waits for the end of the run
WAIT_S = 1


class ShardLogs:
    """Logs of the shards of one broadcast, from a line on; every line is read once."""

    def __init__(self, client: ApiClient, run_id: str, *, from_line: int) -> None:
        self._client, self._run_id, self._from_line = client, run_id, from_line
        #: id of a shard -> its first unread line
        self._next_line: dict[str, int] = {}
        #: messages about shards whose log cannot be read, each of which is printed once
        self._printed_notes: set[str] = set()

    def lines(self) -> Iterator[Item]:
        """Yield the current lines: ``run``, ``shard``, ``line`` and ``text``."""
        yield from self._new_lines(self._client.run(self._run_id))

    def grown_lines(self, *, timeout_s: float | None) -> Iterator[Item]:
        """Yield the lines as the logs grow, until the run has ended or ``timeout_s`` have passed."""
        for run in self._client.watch(self._run_id, timeout_s=timeout_s, wait_s=WAIT_S):
            yield from self._new_lines(run)

    def _new_lines(self, run: Item) -> Iterator[Item]:
        for shard in run["shards"]:
            try:
                yield from self._of_shard(shard)
            except ApiRefused as exc:
                self._note_once(f"{prefix(shard)}{exc}")

    def _of_shard(self, shard: Item) -> Iterator[Item]:
        run_id = str(shard["id"])
        for piece in self._client.log(run_id, from_line=self._next_line.get(run_id, self._from_line)):
            for number, text in enumerate(piece["lines"], piece["from_line"]):
                yield {"run": run_id, "shard": shard["shard"], "line": number, "text": text}
            self._next_line[run_id] = piece["next_line"]
            for reason in _reasons(piece):
                self._note_once(f"{prefix(shard)}{reason}")

    def _note_once(self, line: str) -> None:
        if line not in self._printed_notes:
            self._printed_notes.add(line)
            note(line, fg="yellow")


def show_log(invocation: Invocation, run_id: str, *, from_line: int, follow: bool) -> None:
    """Print the current log; with ``follow``, also what is added until the run has ended."""
    client = invocation.client
    lines = grown_lines(client, run_id, from_line=from_line) if follow else _lines(client, run_id, from_line)
    if invocation.is_for_people:
        for line in lines:
            click.echo(line_text(line))
    else:
        show_list(invocation, lines, ())


def line_text(line: Item) -> str:
    """Return a line for people; lines of a broadcast begin with their shard."""
    return prefix(line) + printable_log_line(str(line["text"]))


def grown_lines(
    client: ApiClient, run_id: str, *, from_line: int = 1, timeout_s: float | None = None
) -> Iterator[Item]:
    """Yield the lines of a log as it grows, until the run has ended or ``timeout_s`` have passed.

    A broadcast has the lines of all its shards. Reasons for missing lines go to standard error.
    """
    started_s, problem, is_broadcast = monotonic_s(), "", False
    for event in client.follow_log(run_id, from_line=from_line, timeout_s=timeout_s):
        if "text" in event:
            yield event
        if event.get("error", problem) != problem:
            problem = event["error"]
            note(problem, fg="yellow")
        is_broadcast = bool(event.get("shards"))
    if is_broadcast:
        left_s = None if timeout_s is None else max(0.0, timeout_s - (monotonic_s() - started_s))
        yield from ShardLogs(client, run_id, from_line=from_line).grown_lines(timeout_s=left_s)


def _lines(client: ApiClient, run_id: str, from_line: int) -> Iterator[Item]:
    """Yield the current lines; the reasons for missing ones go to standard error."""
    try:
        yield from _read(client, run_id, from_line)
    except Conflict:
        if not client.run(run_id).get("shards"):
            raise
        yield from ShardLogs(client, run_id, from_line=from_line).lines()


def _read(client: ApiClient, run_id: str, from_line: int) -> Iterator[Item]:
    notes = set[str]()
    for piece in client.log(run_id, from_line=from_line):
        for number, text in enumerate(piece["lines"], piece["from_line"]):
            yield {"line": number, "text": text}
        for reason in _reasons(piece):
            if reason not in notes:
                notes.add(reason)
                note(reason, fg="yellow")


def _reasons(piece: Item) -> Iterator[str]:
    """Yield why a piece has no lines, and what is missing of its log."""
    if not piece["lines"] and piece["message"]:
        yield piece["message"]
    for missing in piece.get("missing", ()):  # Older consoles have no log archive.
        yield missing["text"]


def prefix(line: Item) -> str:
    """Return the prefix of a shard's line, ``[0/2] ``; "" for other lines."""
    return f"[{line['shard']}] " if line.get("shard") else ""
