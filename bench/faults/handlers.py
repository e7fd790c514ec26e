"""Handlers for the executor client that record what really ran: one JSON line per event, with O_APPEND.

``FAULTS_JOURNAL`` names the file. Only the checker reads it, afterwards.
"""

import json
import os
import random
import time

from executor_client import context, job


def note(event: str, **more: int) -> None:
    line = {
        "event": event,
        "log_id": context.log_id,
        "job_id": context.job_id,
        "wall_ms": time.time_ns() // 1_000_000,
        **more,
    }
    descriptor = os.open(os.environ["FAULTS_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, json.dumps(line).encode() + b"\n")
    os.close(descriptor)


@job("ok")
def ok() -> None:
    """Succeed after the number of seconds in the parameter."""
    note("start")
    context.cancelled.wait(float(context.param or 0))
    note("finish", code=200)


@job("fail")
def fail() -> None:
    """Fail."""
    note("start")
    note("finish", code=500)
    context.fail("told to fail")


@job("flaky")
def flaky() -> None:
    """Fail in a share of the runs; the parameter is ``SECONDS SHARE``."""
    seconds, share = (float(part) for part in context.param.split())
    note("start")
    context.cancelled.wait(seconds)
    if random.random() < share:
        note("finish", code=500)
        context.fail("failed by chance")
    else:
        note("finish", code=200)


@job("talk")
def talk() -> None:
    """Write a line of log every 50 ms, for the number of seconds in the parameter."""
    note("start")
    until, number = time.monotonic() + float(context.param), 0
    while time.monotonic() < until and not context.cancelled.wait(0.05):
        number += 1
        context.log(f"line {number} of the run {context.log_id}")
    note("finish", code=200)
