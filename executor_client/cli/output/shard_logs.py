"""Shard logs of a broadcast: the lines of one shard after another, each with its shard."""

from collections.abc import Iterator

from executor_client.api.client import ApiClient
from executor_client.api.errors import ApiRefused
from executor_client.api.session import Item
from executor_client.cli.output.output import note

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
            if not piece["lines"] and piece["message"]:
                self._note_once(f"{prefix(shard)}{piece['message']}")

    def _note_once(self, line: str) -> None:
        if line not in self._printed_notes:
            self._printed_notes.add(line)
            note(line, fg="yellow")


def prefix(line: Item) -> str:
    """Return the prefix of a shard's line, ``[0/2] ``; "" for other lines."""
    return f"[{line['shard']}] " if line.get("shard") else ""
