"""Handlers that end in every way, for an executor and for ``run_handler`` alike."""
# ruff: noqa: T201 - that is what handlers do

import asyncio
import contextlib
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from executor_client import HandlerRegistry, context

SAMPLES = HandlerRegistry()
job = SAMPLES.job


def returning(value: Any) -> Callable[[], Any]:
    return lambda: value


def raising(error: BaseException) -> Any:
    raise error


def failing(kind: type[BaseException], *arguments: Any) -> Callable[[], Any]:
    return lambda: raising(kind(*arguments))


for name, value in {
    "nothing": None,
    "text": "done",
    "a number": 42,
    "an object": {"rows": 3, "days": ["2024-05-01"]},
    "a long text": "x" * 60_000,
    "no text": "\ud800 and \x00",
}.items():
    job(name)(returning(value))

for kind, arguments in (
    (ValueError, ["bad day\nsecond line"]),
    (SystemExit, [3]),
    (SystemExit, ["no configuration"]),
    (KeyboardInterrupt, []),
    (GeneratorExit, []),
    (StopIteration, []),
    (asyncio.CancelledError, []),
):
    job(f"raises {kind.__name__} {arguments}")(failing(kind, *arguments))


@job("sets failure")
def sets_failure() -> str:
    context.fail("no rows")
    return "ignored"


@job("sets a code")
def sets_a_code() -> None:
    context.result(201, context.param)


@job("sets an impossible code")
def sets_an_impossible_code() -> None:
    context.result(0, "x")


@job("chains")
def chains() -> None:
    try:
        raising(KeyError("inner"))
    except KeyError as exc:
        raise RuntimeError("outer") from exc


@job("writes")
def writes() -> None:
    context.log("line %s of %s", 1, context.shard_total)
    print("printed")
    print("complained", file=sys.stderr)
    logging.getLogger("shop").info("informed")
    logging.getLogger("shop").debug("kept back")
    thread = threading.Thread(target=lambda: print("from a thread"))
    thread.start()
    thread.join()
    print("no end of line", end="")


@job("awaits")
async def awaits() -> str:
    await asyncio.sleep(0)
    print("awaited")
    return context.param or ""


@job("with hooks", init=lambda: raising(OSError("no pool")), destroy=lambda: print("closed"))
def with_hooks() -> str:
    return "went on"


@job("child", process=True)
def child() -> str:
    print("in a child")
    subprocess.run([sys.executable, "-c", "print('of a child')"], check=True)
    return f"{context.param} {context.shard_index}/{context.shard_total}"


@job("child that exits", process=True)
def child_that_exits() -> None:
    sys.exit(4)


@job("waits")
def waits() -> None:
    context.log("waiting")
    if context.cancelled.wait(30):
        context.log("cancelled")
        context.fail("stopped early")


@job("loops")
def loops() -> None:
    try:
        while True:
            threading.Event().wait(0.01)
    except Exception:
        context.log("never: it is no Exception")
    finally:
        context.log("cleaned up")


@job("awaits long")
async def awaits_long() -> None:
    try:
        await asyncio.sleep(30)
    finally:
        context.log("cancelled")


@job("ignores the end")
def ignores_the_end() -> str:
    with contextlib.suppress(BaseException):
        while True:
            threading.Event().wait(0.01)
    return "too late"


@job("child that waits", process=True)
def child_that_waits() -> None:
    print("waiting", flush=True)
    context.cancelled.wait(30)
    print("cancelled", flush=True)
