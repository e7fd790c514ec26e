"""Progress of a run in words: ``93 of 200 pages · about 2 min left``."""

from flask_babel import format_decimal

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.console.web.language import _
from executor_client.wire.run_reports import Progress

#: an estimate is made from this share of the work on, and after this time
SHARE_MIN, ELAPSED_MIN_MS = 0.02, 3 * SECOND_MS
#: an estimate that is longer says nothing
LEFT_MAX_MS = 7 * DAY_MS


def progress_text(progress: Progress, elapsed_ms: Millis | None = None) -> str:
    """Return what is done, and of a run that has run for ``elapsed_ms`` about how long the rest takes."""
    if progress.total <= 0:
        return progress.text
    numbers = _("%(done)s of %(total)s", done=_number(progress.done), total=_number(progress.total))
    parts = [f"{numbers} {progress.text}".strip()]
    share = progress.done / progress.total
    if elapsed_ms is not None and elapsed_ms >= ELAPSED_MIN_MS and SHARE_MIN <= share < 1:
        left_ms = elapsed_ms * (1 - share) / share
        if left_ms < LEFT_MAX_MS:
            parts.append(_("about %(time)s left", time=_rough(left_ms)))
    return " · ".join(parts)


def _number(value: float) -> str:
    return str(format_decimal(round(value, 1)))


def _rough(ms: float) -> str:
    """Return a time in one unit."""
    if ms < MINUTE_MS:
        return _("%(n)s s", n=max(1, round(ms / SECOND_MS)))
    if ms < 2 * HOUR_MS:
        return _("%(n)s min", n=round(ms / MINUTE_MS))
    return _("%(n)s h", n=round(ms / HOUR_MS))
