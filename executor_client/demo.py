"""Demo handlers: ``python -m executor_client executor_client.demo --admin … --appname …``."""

from executor_client import context, job

#: lines written by demoJobHandler, and the pause between them
DEMO_LINES = 10
DEMO_PAUSE_S = 0.3


@job("demoJobHandler")
def demo() -> str | None:
    """Write ten lines, with short pauses."""
    context.log("Hello from Python, parameter %r", context.param)
    for number in range(1, DEMO_LINES + 1):
        context.log("line %s of %s", number, DEMO_LINES)
        if context.cancelled.wait(DEMO_PAUSE_S):
            context.fail("stopped early")
            return None
    return f"{DEMO_LINES} lines written"


@job("sleepJobHandler")
def sleep() -> None:
    """Sleep for the number of seconds in the parameter, for example ``2.5``."""
    try:
        seconds = float(context.param or "")
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        context.fail(f"the parameter must be a number of seconds from 0 to 86400, not {context.param!r}")
        return
    context.log("sleeping for %s s", seconds)
    if context.cancelled.wait(seconds):
        context.log("interrupted by a kill or a timeout")
    else:
        context.success(f"slept {seconds} s")


@job("failJobHandler")
def fail() -> None:
    """Fail, with a traceback in the log."""
    raise RuntimeError(f"failJobHandler always fails; parameter {context.param!r}")


@job("shardingJobHandler")
def sharding() -> str:
    """Log the shards and return which of them this run is."""
    text = f"shard {context.shard_index} of {context.shard_total}"
    for shard in range(max(context.shard_total, 0)):
        context.log("shard %s: %s", shard, "this run" if shard == context.shard_index else "another run")
    return text
