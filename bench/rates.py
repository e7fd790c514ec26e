"""The highest rate that an installation sustains, found by a few steps; nothing here measures."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

#: more steps are not worth their time
STEPS = 5
#: a failed rate at most this much above one that was held ends the search
CLOSE = 1.15
#: how much is tried above a rate that was held
RAISE = 1.4
#: all of a second is sent by then, or the installation is behind; ms
LAG_MS = 1_500
#: growth of the lag that is no noise, in ms a second: 3 % of the load is left over
GROWTH_MS = 30
#: least share of the rate at which results are stored; the last of a short window are stored after its end
STORED = 0.85


class Step(NamedTuple):
    """A rate that was offered, whether it was held, and what was achieved."""

    offered: int
    is_held: bool
    achieved: float


def is_held(figures: dict[str, Any], rate: int) -> bool:
    """Tell whether a window had no flaw, its lag did not grow, and its results were stored at the rate."""
    has_flaw = any(figures[flaw] for flaw in ("lost", "doubled", "early", "unfinished"))
    if has_flaw or figures["triggers_per_s"] < STORED * rate:
        return False
    worst = figures["worst_lag_ms_by_second"]
    late = sorted(worst[-max(len(worst) // 3, 1) :])
    return late[len(late) // 2] <= LAG_MS and growth_ms(worst[1:]) <= GROWTH_MS


def growth_ms(worst: Sequence[float]) -> float:
    """Return the slope of the worst lags of each second: the line between medians of their halves."""
    half = len(worst) // 2
    if half < 2:
        return 0.0
    first, last = sorted(worst[:half]), sorted(worst[-half:])
    return (last[half // 2] - first[half // 2]) / (len(worst) - half)


def next_rate(steps: Sequence[Step], start: int) -> int | None:
    """Return the rate to offer next, None at the end of the search."""
    held = max((step.offered for step in steps if step.is_held), default=0)
    failed = [step for step in steps if not step.is_held]
    if not steps:
        return start
    if len(steps) == STEPS:
        return None
    if not failed:
        return round(held * RAISE)
    lowest = min(step.offered for step in failed)
    if not held:
        achieved = min(step.achieved for step in failed)
        return round(max(min(0.9 * achieved, 0.75 * lowest), 1))
    return None if lowest <= held * CLOSE else round((held * lowest) ** 0.5)


def sustained(offer: Callable[[int], dict[str, Any]], start: int) -> tuple[int, list[Step], dict[str, Any]]:
    """Offer rates; return the highest that was held (0: none), all steps, and the figures at that rate."""
    steps: list[Step] = []
    best, figures_of_best = 0, {}
    while (rate := next_rate(steps, start)) is not None:
        figures = offer(rate)
        steps.append(Step(rate, is_held(figures, rate), figures["triggers_per_s"]))
        if steps[-1].is_held and rate > best:
            best, figures_of_best = rate, figures
    return best, steps, figures_of_best
