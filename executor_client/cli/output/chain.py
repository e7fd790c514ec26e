"""Waiting for a chain: a run with all that follows it, each printed as it ends."""

from contextlib import closing

import click

from executor_client.api.client import OPEN_STATES
from executor_client.api.error_messages import EXIT_FAILED
from executor_client.api.session import Item
from executor_client.cli.invocation import EXIT_INTERRUPTED, EXIT_TIMED_OUT, Invocation, Stop
from executor_client.cli.output.output import note, plain, show_document
from executor_client.cli.output.progress import Progress
from executor_client.cli.output.run_columns import COLOURS, run_line
from executor_client.config.program_name import program_name
from executor_client.wire.clock import monotonic_s

#: seconds of one wait, after which the runs that have ended are printed
WAIT_S = 2
SUCCEEDED, TIMED_OUT = "succeeded", "timed_out"


class ChainWait:
    """Wait for the end of a chain; ``quiet``: an id is on standard output already."""

    def __init__(self, invocation: Invocation, chain: str, *, timeout_s: int | None, quiet: bool) -> None:
        self._invocation, self._chain, self._timeout_s = invocation, chain, timeout_s
        self._is_quiet = quiet
        #: standard output is reserved for the id, or for one document
        self._is_note = quiet or not invocation.is_for_people
        self._printed_ids = set[str]()

    def finish(self) -> None:
        """Wait, print each run that ends and the rounds that were not run, and leave with the exit code."""
        list_command = f"{program_name()} runs list --chain {self._chain}"
        try:
            chain = self._wait()
        except KeyboardInterrupt:
            note(f"\nchain {self._chain} continues; its runs: {list_command}")
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
        if not self._invocation.is_for_people and not self._is_quiet:
            show_document(self._invocation, chain)
        if not chain["ended"]:
            raise Stop(
                f"chain {self._chain}: not ended after {self._timeout_s} s; it continues; its runs:"
                f" {list_command}",
                EXIT_TIMED_OUT,
            )
        state = chain["state"]
        self._print(f"chain {self._chain}: {state.replace('_', ' ')}", state)
        if state != SUCCEEDED:
            raise click.exceptions.Exit(EXIT_TIMED_OUT if state == TIMED_OUT else EXIT_FAILED)

    def _wait(self) -> Item:
        client = self._invocation.client
        until_s = None if self._timeout_s is None else monotonic_s() + self._timeout_s
        with closing(Progress()) as progress:
            while True:
                left_s = None if until_s is None else max(0.0, until_s - monotonic_s())
                wait_s = WAIT_S if left_s is None else min(WAIT_S, round(left_s))
                chain = client.get(f"/chains/{self._chain}", {"wait": wait_s} if wait_s else {})
                progress.close()
                self._print_ended()
                if chain["ended"] or left_s == 0:
                    break
                left = f"{chain['on_their_way']} runs on their way, {chain['open_rounds']} rounds open"
                progress.show(f"chain {self._chain}: {left}")
        not_run = list(client.items("/rounds", {"chain": self._chain, "state": "not_run"}))
        for item in reversed(not_run):
            if item["reason"] != "excused":
                job = f"job {item['job_id']} ({plain(item['description'])})"
                self._print(f"{job}: not run: {reason_of(item)}", "not_started")
        return chain

    def _print_ended(self) -> None:
        runs = self._invocation.client.items("/runs", {"chain": self._chain})
        rows = [run for run in runs if run["state"] not in OPEN_STATES and run["id"] not in self._printed_ids]
        for run in reversed(rows):
            self._printed_ids.add(run["id"])
            self._print(f"job {run['job_id']}: {run_line(run)}", run["state"])

    def _print(self, line: str, state: str) -> None:
        click.secho(line, fg=COLOURS.get(state), err=self._is_note)


def reason_of(item: Item) -> str:
    """Return why a round was not run, with the run that is its cause."""
    cause = item.get("cause_run_id")
    return plain(item["reason"]) + (f", run {cause}" if cause else "")
