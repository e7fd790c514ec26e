"""Archiver child: fetches the logs of runs from their executors and stores them."""

import threading

from app.blobs.stores import store_of
from app.clock import now_ms
from app.executors.gateway import Gateway
from app.pipeline.clocks.guard import ClockGuard
from app.services.archive.archiver import Archiver
from app.services.archive.indexing import Indexer
from app.services.executors.callers import Caller
from app.services.installation.nodes import node_name
from app.settings.config import Config
from app.settings.home import access_tokens
from workers.liveness import Pulse
from workers.loop import Loop, round_max_s
from workers.monitor import skip_if_clock_off

#: how long a stop waits for the current look
STOP_S = 1.0


def run(config: Config, stop: threading.Event, pulse: Pulse) -> None:
    """Fetch logs until ``stop`` is set; the body of the child process."""
    caller = Caller(Gateway(config.executor_networks), access_tokens(config))
    store = store_of(config)
    archiver = Archiver(config, node=node_name(config), caller=caller, store=store)
    tick = skip_if_clock_off(archiver.tick, ClockGuard(now_ms))
    loop = Loop("archive", tick, max_s=round_max_s(config))
    indexer = Indexer(store, now_ms)
    index = Loop("log-index", indexer.tick, max_s=round_max_s(config))
    loop.start()
    index.start()
    pulse.mark_ready()
    pulse.follow(lambda now: loop.is_alive(now) and index.is_alive(now), stop)
    index.stop(STOP_S)
    loop.stop(STOP_S)
    archiver.close()
