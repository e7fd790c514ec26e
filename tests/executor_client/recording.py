"""Handlers of a real executor process: they write down each start and end in the file the environment names."""

import os

from executor_client import context, job


def record(what: str) -> None:
    """Append a line; the page cache survives a kill -9."""
    descriptor = os.open(os.environ["RECORDING"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{what} {context.log_id}\n".encode())
    os.close(descriptor)


@job("record")
def record_run() -> None:
    """Take as many milliseconds as the parameter says."""
    record("start")
    context.cancelled.wait(int(context.param or 0) / 1000)
    record("end")


@job("recordFailure")
def record_failure() -> None:
    """Fail, with the parameter as the message."""
    record("start")
    context.fail(context.param)
    record("end")


@job("recordInChild", process=True)
def record_in_child() -> None:
    """Do not end by itself."""
    record("start")
    context.cancelled.wait(60)
