"""Handlers of an executor process that record starts and ends in the file named by ``RECORDING``."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

from executor_client import context, job


def record(event: str) -> None:
    """Append a line; the page cache survives SIGKILL."""
    descriptor = os.open(os.environ["RECORDING"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{event} {context.log_id}\n".encode())
    os.close(descriptor)


@job("record")
def record_run() -> None:
    """Run for the number of milliseconds in the parameter."""
    record("start")
    context.cancelled.wait(int(context.param or 0) / 1000)
    record("end")


@job("recordFailure")
def record_failure() -> None:
    """Fail with the parameter as the message."""
    record("start")
    context.fail(context.param)
    record("end")


@job("saveAndWait")
def save_and_wait() -> None:
    """Save a checkpoint and run until it is ended."""
    context.save_checkpoint("half")
    record("start")
    context.cancelled.wait(60)


@job("recordInChild", process=True)
def record_in_child() -> None:
    """Run until it is ended."""
    record("start")
    context.cancelled.wait(60)


@job("runPrograms")
def run_programs() -> None:
    """Run two programs at a time until they are ended, after one that ends by itself."""
    context.run(["true"])
    with ThreadPoolExecutor(2) as pool:
        programs = [pool.submit(context.run, ["sh", "-c", "echo go; sleep 60"]) for _ in range(2)]
        for program in programs:
            program.result()


@job("runPrograms.inChild", process=True)
def run_programs_in_child() -> None:
    """Do the same in a child process."""
    run_programs()


def end_forked() -> str:
    """End a forked process by SIGTERM; return its exit code."""
    child = os.fork()
    if child == 0:
        threading.Event().wait(60)
        os._exit(1)
    os.kill(child, signal.SIGTERM)
    return f"exit code {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"


job("endForked")(end_forked)
job("endForkedInChild", process=True)(end_forked)
