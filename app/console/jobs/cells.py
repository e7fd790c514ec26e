"""Cells of the job list, written here because a page has hundreds and a macro takes several times as long."""

from collections.abc import Callable
from functools import lru_cache

from markupsafe import Markup, escape

from app.console.web.language import _
from app.console.web.languages import language_of_request
from app.domain.cron_words import describe
from app.domain.enums import ScheduleType
from app.models.job import Job

#: characters that are shown in full in every column
SHORT = 14
#: cached schedules, all languages together
SCHEDULES_KEPT = 4_096


def cut(text: str, href: str = "") -> Markup:
    """Return text for one line, as a link if there is an address; a longer one has itself as its title."""
    shown = escape(text)
    title = f' title="{shown}"' if len(text) > SHORT else ""
    if href:
        return Markup(f'<a class="cut" href="{escape(href)}"{title}>{shown}</a>')  # nosec B704  # escaped above
    return Markup(f'<span class="cut"{title}>{shown}</span>')  # nosec B704  # escaped above


def schedule_writer() -> Callable[[Job], Markup]:
    """Return a function that writes the schedule of a job on two lines: the expression, and what it means."""
    language = language_of_request()

    def write(job: Job) -> Markup:
        return _schedule(job.schedule_type or "", job.schedule_conf or "", job.time_zone or "", language)

    return write


@lru_cache(SCHEDULES_KEPT)
def _schedule(kind: str, conf: str, time_zone: str, language: str) -> Markup:
    if kind == ScheduleType.NONE:
        return Markup('<span class="muted">{}</span>').format(_("none"))
    shown = conf if kind in {ScheduleType.CRON, ScheduleType.AT} else f"{kind} {conf}"
    meaning = " · ".join(text for text in (time_zone, _words(kind, conf, language)) if text)
    return Markup(
        '<div class="cut mono" title="{}">{}</div><div class="muted second cut" title="{}">{}</div>'
    ).format(shown, shown, meaning, meaning)


def _words(kind: str, conf: str, language: str) -> str:
    """Return what a schedule means; empty if there are no words for it."""
    match kind:
        case ScheduleType.CRON:
            words = describe(conf, language)
            return words if words != conf else ""
        case ScheduleType.FIX_RATE:
            return _("every %(n)s seconds", n=conf)
        case ScheduleType.FIX_DELAY:
            return _("%(n)s seconds after each run", n=conf)
        case ScheduleType.AT:
            return _("once")
        case _:
            return ""
