"""Words on failing jobs in the list: how often in a row, since when, and when they last succeeded."""

from markupsafe import Markup

from app.console.ui.filters import absolute, age, iso, outcome
from app.console.ui.last_runs import SIGNS
from app.console.web.language import _, ngettext
from app.domain.jobs.failing import Failing
from app.domain.runs.outcome import OPEN
from app.store.runs.recent import Run


def failures_in_a_row(failing: Failing[Run], last: Run | None) -> Markup:
    """Return ``13× · 3 days`` and, while ``last`` is in progress, what was before: ``Failed 13× · 3 days``.

    Empty for a single failure that is the last run. ``>100×``: there may be more.
    """
    is_tried_again = outcome(last) in OPEN
    if failing.failures == 1 and not is_tried_again:
        return Markup("")
    word = f"{SIGNS[outcome(failing.last)][2]} " if is_tried_again else ""
    count, more = (failing.failures - 1, ">") if failing.is_cut else (failing.failures, "")
    return Markup('{}{}{}×<span class="since"> · {}<time datetime="{}" data-age>{}</time></span>').format(
        word, more, count, more, iso(failing.since_ms), age(failing.since_ms)
    )


def failing_title(failing: Failing[Run]) -> str:
    """Return in sentences what the banner of the job's page begins with.

    Its times are absolute, so that a row is not sent and marked as changed each minute.
    """
    since, success = absolute(failing.since_ms), failing.success
    if failing.is_cut:
        words = _("Failing since before %(time)s.", time=since)
        return f"{words} " + _("More than %(n)s failures in a row.", n=failing.failures - 1)
    words = _("Failing since %(time)s.", time=since)
    words += " " + ngettext("%(num)d failure.", "%(num)d failures in a row.", failing.failures)
    if success is None:
        return f"{words} " + _("It has never succeeded.")
    time = absolute(success.trigger_time)
    return f"{words} " + _("Last success: %(run)s, %(time)s.", run=f"#{success.id}", time=time)
