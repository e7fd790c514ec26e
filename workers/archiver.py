"""Archiver child: fetches the logs of runs from their executors and stores them, and deletes old ones.

It yields the processor to the other children: a log that is fetched later is no delay of a run.
"""

import os
import threading

from app.blobs.stores import store_of
from app.clock import now_ms
from app.executors.gateway import Gateway
from app.pipeline.clocks.guard import ClockGuard
from app.services.archive.archiver import Archiver
from app.services.archive.indexing import Indexer
from app.services.archive.keeping import Keeper
from app.services.executors.callers import Caller
from app.services.installation.nodes import node_name
from app.settings.config import Config
from app.settings.home import access_tokens
from workers.liveness import Pulse
from workers.loop import Loop, round_max_s
from workers.monitor import skip_if_clock_off

#: how long a stop waits for the current look of each loop
STOP_S = 1.0
#: steps of priority below the other children
NICENESS = 5


def run(config: Config, stop: threading.Event, pulse: Pulse) -> None:
    """Fetch logs until ``stop`` is set; the body of the child process."""
    os.nice(NICENESS)
    caller, store = Caller(Gateway(config.executor_networks), access_tokens(config)), store_of(config)
    archiver = Archiver(config, node=node_name(config), caller=caller, store=store)
    guard = ClockGuard(now_ms)
    loops = [
        Loop("archive", skip_if_clock_off(archiver.tick, guard), max_s=round_max_s(config)),
        Loop("log-index", skip_if_clock_off(Indexer(store, now_ms).tick, guard), max_s=round_max_s(config)),
        Loop("archive-clean-up", skip_if_clock_off(Keeper(config, store).tick, guard), max_s=None),
    ]
    for loop in loops:
        loop.start()
    pulse.mark_ready()
    pulse.follow(lambda now: all(loop.is_alive(now) for loop in loops), stop)
    for loop in loops:
        loop.request_stop()
    for loop in loops:
        loop.stop(STOP_S)
    archiver.close()
