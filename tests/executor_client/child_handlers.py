"""Process handlers of tests: a module that imports little, as each child process imports it anew."""

import asyncio
import logging
import os
import threading
from datetime import date
from typing import Any

from executor_client import context


def child_says() -> str:
    context.log("pid %s, parameter %s", os.getpid(), context.param)
    print("printed")  # noqa: T201 - goes into the log
    return f"not {os.getppid()}"


async def child_takes(day: date, limit: int = 5) -> dict[str, Any]:
    return {"day": day, "limit": limit, "pid": os.getpid()}


async def child_waits_async() -> None:
    context.log("waiting")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        context.log("cancelled")
        raise


def child_waits() -> None:
    context.log("waiting")
    context.cancelled.wait(60)
    context.log("cancelled")


def child_spins_with_family() -> None:
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "60"])
    context.log("family ready")
    while True:
        try:
            threading.Event().wait(60)
        except BaseException:
            continue


def child_logs() -> None:
    logging.getLogger("myapp").info("logged")
    logging.getLogger("myapp").debug("fine detail")


def child_search_path() -> str | None:
    return os.environ.get("PYTHONPATH")


def child_dies() -> None:
    os._exit(7)


def child_fails() -> None:
    raise ValueError("bad day")
