"""Hour bars: the runs of an instance in each hour of a day, as a small drawing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.executors.draining import bare_address
from app.domain.executors.run_hours import Hour

#: pixels: from a bar to the next, and the highest and the lowest bar
STEP, HEIGHT, LEAST = 5, 20, 2


@dataclass(frozen=True, slots=True)
class HourBar:
    """Bar of an hour; its failures are drawn at its foot."""

    x: int
    height: int
    failed_height: int


@dataclass(frozen=True, slots=True)
class HourBars:
    """Bars of an instance; those of all instances of a page have the same scale."""

    bars: list[HourBar]
    width: int
    height: int
    #: hours with failures
    failing_hours: int
    #: hours without runs
    empty_hours: int


def hour_bars(hours: Mapping[str, Sequence[Hour]], addresses: Sequence[str]) -> dict[str, HourBars]:
    """Return address -> its bars, without the instances that had no runs."""
    of_address = {address: hours.get(bare_address(address), ()) for address in addresses}
    most = max((hour.runs for rows in of_address.values() for hour in rows), default=0)
    return {address: _bars(rows, most) for address, rows in of_address.items() if rows}


def _bars(hours: Sequence[Hour], most: int) -> HourBars:
    bars = [
        HourBar(STEP * place, _height(hour.runs, most), _height(hour.failures, most))
        for place, hour in enumerate(hours)
        if hour.runs
    ]
    failing = sum(hour.failures > 0 for hour in hours)
    return HourBars(bars, STEP * len(hours), HEIGHT, failing, len(hours) - len(bars))


def _height(runs: int, most: int) -> int:
    return max(LEAST, round(HEIGHT * runs / most)) if runs else 0
