"""Child 2: the monitors. Each is a tick with its period; a slow one never holds up another."""

import logging
import threading

from app.clock import Millis
from app.config import Config
from app.db import transact
from app.domain.enums import NodeKind
from app.home import access_tokens
from app.pipeline import registration, resolve
from app.pipeline.delays import tick_delays
from app.services import nodes
from app.services.alarms import AlarmTeller
from app.services.reporting import Cleaner, Reporter
from workers.loop import Loop

logger = logging.getLogger(__name__)

#: period of the registry round; dead after 90 s
REGISTRY_PERIOD_MS: Millis = 30_000
#: period of the look for expired leases
LEASE_PERIOD_MS: Millis = 500
#: wait for the round a loop is in, at a stop; whatever it does can be done again
STOP_S = 1.0


class Monitor:
    """All loops of the monitor child."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._resolver = resolve.Resolver(config, token=access_tokens(config)[0])
        self._teller = AlarmTeller(config, node=nodes.node_name(config))
        self._loops = [
            Loop("node-beat", lambda now_ms: nodes.beat(config, NodeKind.WORKERS, now_ms=now_ms)),
            Loop("registry", tick_registry),
            Loop("leases", tick_leases),
            Loop("resolve", self._resolver.tick),
            Loop("delays", tick_delays),
            Loop("alarms", self._teller.tick),
            Loop("report", Reporter(config).tick),
            Loop("clean-up", Cleaner(config).tick),
        ]

    def start(self) -> None:
        """Begin."""
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """End all loops, then say that this node is gone."""
        for loop in self._loops:
            loop.ask_to_stop()
        for loop in self._loops:
            loop.stop(STOP_S)
        self._resolver.close()
        self._teller.close()
        nodes.end(self._config, NodeKind.WORKERS)


def tick_registry(now_ms: Millis) -> Millis:
    """Forget silent executors, keep the address lists true."""
    transact(lambda session: registration.tick_registry(session, now_ms=now_ms))
    return REGISTRY_PERIOD_MS


def tick_leases(now_ms: Millis) -> Millis:
    """Call unknown what a sender took and never reported."""
    resolve.expire_leases(now_ms=now_ms)
    return LEASE_PERIOD_MS


def run(config: Config, stop: threading.Event) -> None:
    """Run the monitors until ``stop`` is set; the body of the child process."""
    monitor = Monitor(config)
    monitor.start()
    stop.wait()
    monitor.stop()
