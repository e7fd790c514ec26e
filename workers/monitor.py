"""Monitor child: each monitor is a tick in a thread of its own, so a slow one does not delay the others."""

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial

from app.clock import DAY_MS, Millis, monotonic_ms, now_ms
from app.database.engine import read_scope, transact
from app.domain.enums import NodeKind
from app.domain.tasks import TaskKind
from app.executors.gateway import Gateway
from app.pipeline import registration, resolve
from app.pipeline.calendars.explaining import tick_explained
from app.pipeline.calendars.replanning import RuleReplanning
from app.pipeline.clocks.guard import JUMP_MS, ClockGuard, ClockWatch
from app.pipeline.clocks.zone_rules import tick_zone_rules
from app.pipeline.delays import tick_delays
from app.pipeline.inherited_runs import InheritedRuns
from app.pipeline.rounds.watch import tick_rounds
from app.pipeline.spans import SpanComparison
from app.services.accounts import weak_passwords
from app.services.alarms.notifier import AlarmNotifier
from app.services.alarms.texts import compose_clock
from app.services.backfills.watch import BackfillWatch
from app.services.calendars.scopes import tick_members
from app.services.completeness.counting import CompletenessCounter
from app.services.executors.callers import Caller
from app.services.installation import nodes
from app.services.promises.watch import PromiseWatch
from app.services.report.reporting import Cleaner, Reporter
from app.services.runs.replacing import Replacement
from app.services.tasks.runner import Piece, TaskRunner
from app.services.tasks.task_step import Turn
from app.settings.config import Config
from app.settings.home import access_tokens
from workers.liveness import Pulse
from workers.loop import Loop, Tick, round_max_s

logger = logging.getLogger(__name__)

#: period of the registry round; an instance expires after 90 s
REGISTRY_PERIOD_MS: Millis = 30_000
#: a round later than this was delayed, by an unavailable database or a suspended process
REGISTRY_LATE_MS: Millis = 5_000
#: period of the check for expired leases
LEASE_PERIOD_MS: Millis = 1_000
#: wait after a round that was skipped because of a wrong clock
CLOCK_WAIT_MS: Millis = 1_000
#: how long a stop waits for the current round of each loop; every round can be repeated
STOP_S = 1.0


class Monitor:
    """All loops of the monitor child."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._resolver = resolve.Resolver(config, tokens=access_tokens(config))
        self._node = nodes.node_name(config)
        self._notifier = AlarmNotifier(config, node=self._node)
        self._tasks = TaskRunner(config, node=self._node, pieces=PIECES)
        self._backfills = BackfillWatch(config, node=self._node)
        guard = ClockGuard(now_ms)
        self._clock = ClockWatch(guard)
        promises = PromiseWatch(node=self._node)
        executors = Caller(Gateway(config.executor_networks), access_tokens(config))
        limit_s, counter = round_max_s(config), CompletenessCounter(config.time_zone)
        self._loops = [
            Loop("node-beat", self.tick_beat, max_s=limit_s),
            Loop("registry", skip_if_clock_off(RegistryRound().tick, guard), max_s=limit_s),
            Loop("leases", skip_if_clock_off(self.tick_leases, guard), max_s=limit_s),
            Loop("resolve", skip_if_clock_off(self._resolver.tick, guard), max_s=limit_s),
            Loop("delays", skip_if_clock_off(tick_delays, guard), max_s=limit_s),
            Loop("alarms", self.tick_alarms, max_s=limit_s),
            Loop("promises", skip_if_clock_off(promises.tick, guard), max_s=limit_s),
            Loop("rounds", skip_if_clock_off(tick_rounds, guard), max_s=limit_s),
            Loop("rules", skip_if_clock_off(RuleReplanning(config.time_zone).tick, guard), max_s=limit_s),
            Loop("tags", skip_if_clock_off(tick_members, guard), max_s=limit_s),
            Loop("excluded", skip_if_clock_off(tick_explained, guard), max_s=limit_s),
            Loop("histories", skip_if_clock_off(SpanComparison().tick, guard), max_s=limit_s),
            Loop("completeness", skip_if_clock_off(counter.tick, guard), max_s=None),
            Loop("replacement", skip_if_clock_off(Replacement(executors).tick, guard), max_s=limit_s),
            Loop("backfills", skip_if_clock_off(self._backfills.tick, guard), max_s=limit_s),
            Loop("tasks", skip_if_clock_off(self._tasks.tick, guard), max_s=limit_s),
            Loop("report", skip_if_clock_off(Reporter(config).tick, guard), max_s=None),
            Loop("passwords", warn_of_weak_passwords, max_s=None),
            Loop("clean-up", skip_if_clock_off(Cleaner(config).tick, guard), max_s=None),
        ]
        # A Java admin ends its runs itself, and plans by the rules of its own zones.
        if not config.shared_with_java:
            inherited_tick = skip_if_clock_off(InheritedRuns().tick, guard)
            self._loops.append(Loop("inherited", inherited_tick, max_s=limit_s))
            zone_rules = partial(tick_zone_rules, zone=config.time_zone)
            self._loops.append(Loop("zone-rules", skip_if_clock_off(zone_rules, guard), max_s=None))

    def start(self) -> None:
        """Start all loops."""
        for loop in self._loops:
            loop.start()

    def is_alive(self, now: float) -> bool:
        """Whether no loop hangs, by the monotonic clock."""
        return all(loop.is_alive(now) for loop in self._loops)

    def stop(self) -> None:
        """Stop all loops, then mark this node as stopped."""
        self._tasks.request_stop()
        for loop in self._loops:
            loop.request_stop()
        for loop in self._loops:
            loop.stop(STOP_S)
        self._tasks.close()
        self._backfills.close()
        self._resolver.close()
        self._notifier.close()
        nodes.end(self._config, NodeKind.WORKERS)

    def tick_beat(self, at_ms: Millis) -> Millis:
        """Record that this node is alive, and its clock skew."""
        return nodes.beat(self._config, NodeKind.WORKERS, now_ms=at_ms, skew_ms=self._clock.skew_ms)

    def tick_leases(self, at_ms: Millis) -> Millis:
        """Mark runs as unknown whose sender never reported an outcome."""
        count = resolve.expire_leases(node=self._node, now_ms=at_ms)
        return 0 if count >= resolve.LEASE_ROWS else LEASE_PERIOD_MS

    def tick_alarms(self, at_ms: Millis) -> Millis:
        """Send alarms for failed runs and for a wrong clock here; return the wait until the next round.

        The clock is checked here as well, so that the scan need not send alarms. ``at_ms`` of a wrong clock
        is corrected by its skew: alarms still go out, and no mute or lease ends too early for all nodes.
        """
        news = self._clock.news()
        if not self._clock.is_trusted:
            at_ms -= self._clock.skew_ms
        if news:
            self._notifier.announce(compose_clock(self._node, news, self._config), at_ms)
        return self._notifier.tick(at_ms)


def skip_if_clock_off(tick: Tick, guard: ClockGuard) -> Tick:
    """Return a tick that does nothing while this node's clock is wrong.

    With a clock that is ahead, every instance would seem silent, every lease expired and every log row old,
    for all nodes of the database.
    """

    def checked_tick(at_ms: Millis) -> Millis:
        return tick(at_ms) if guard.look() else CLOCK_WAIT_MS

    return checked_tick


def warn_of_weak_passwords(_at_ms: Millis) -> Millis:
    """Log the users whose scripts still log in with a weak password, once a day."""
    weak_passwords.warn()
    return DAY_MS


class RegistryRound:
    """Registry round: removes silent instances and updates the address lists of the groups.

    A missing heartbeat proves nothing while none could arrive: no console, no database, a suspended host. So
    an instance is removed only if every round of the last HEARD_AFTER_MS was on time and found a listening
    console.
    """

    def __init__(self, monotonic: Callable[[], Millis] = monotonic_ms) -> None:
        self._monotonic = monotonic
        #: of the last round: the monotonic clock, and how far the wall clock was ahead of it
        self._last: tuple[Millis, Millis] | None = None
        #: since when a console has listened without a gap, by the monotonic clock
        self._since: Millis | None = None

    def tick(self, now_ms: Millis) -> Millis:
        """Do one round; return the wait until the next."""
        monotonic = self._monotonic()
        since, self._since = self._since, None  # A round that fails starts the period again.
        with read_scope() as session:
            listening = registration.is_listening(session, now_ms=now_ms)
        if not listening:
            since = None
        elif since is None or not self._is_regular(monotonic, now_ms):
            since = monotonic
        forget = since is not None and monotonic - since >= registration.HEARD_AFTER_MS
        transact(lambda session: registration.tick_registry(session, now_ms=now_ms, forget=forget))
        self._since = since
        self._last = monotonic, now_ms - monotonic
        return REGISTRY_PERIOD_MS

    def _is_regular(self, monotonic: Millis, now_ms: Millis) -> bool:
        """Whether this round is on time after the last one, and the clock has not been set meanwhile."""
        if self._last is None:
            return False
        at_ms, ahead_ms = self._last
        return (
            monotonic - at_ms <= REGISTRY_PERIOD_MS + REGISTRY_LATE_MS
            and abs(now_ms - monotonic - ahead_ms) <= JUMP_MS
        )


def run(config: Config, stop: threading.Event, pulse: Pulse) -> None:
    """Run the monitors until ``stop`` is set; the body of the child process."""
    monitor = Monitor(config)
    monitor.start()
    pulse.mark_ready()
    pulse.follow(monitor.is_alive, stop)
    monitor.stop()


def _change_next(turn: Turn) -> None:
    from app.services.jobs import bulk

    bulk.change_next(turn)


def _clear_next(turn: Turn) -> None:
    from app.services.runs import clearing

    clearing.clear_next(turn)


def _import_task(turn: Turn) -> None:
    from app.services.code import importing

    importing.import_task(turn)


#: kind of task -> its next piece of work, whose module is imported when a task needs it
PIECES: Mapping[str, Piece] = {
    TaskKind.BULK.value: _change_next,
    TaskKind.CLEAR_LOGS.value: _clear_next,
    TaskKind.IMPORT.value: _import_task,
}
