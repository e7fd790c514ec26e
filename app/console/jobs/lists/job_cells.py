"""Cells of the job list, rendered in Python because a page has hundreds and a macro is several times slower.

``cell_finder`` and ``last_finder`` find the arguments of the macros ``cells`` and ``last_run`` of
templates/jobs/_rows.html.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from urllib.parse import quote

from flask import url_for
from markupsafe import Markup, escape

from app.console.jobs.lists.failing_words import failing_title, failures_in_a_row
from app.console.jobs.lists.recent_run_bars import strip_drawer
from app.console.ui.calendars.words import rule_text
from app.console.ui.filters import comma_list, instant, muted_until, next_time_label, outcome
from app.console.ui.labels import GLUE_TYPES, interval_words
from app.console.ui.last_runs import SIGNS
from app.console.web.language import _
from app.console.web.languages import language_of_request
from app.domain.enums import ScheduleType
from app.domain.jobs.failing import Failing
from app.domain.lists.job_search import CodeState
from app.domain.rounds.runs_after import parse_runs_after
from app.domain.schedules.cron_words import describe
from app.models.job import Job
from app.services.runs.rows import JobRow
from app.store.jobs.listing import ListedJob
from app.store.runs.recent import Run

#: characters that are shown in full in every column
SHORT = 14
#: kinds and icons of the states of a job: its last failure while it is failing, else its last run
MARKS = {
    "success": ("success", "check-circle-fill"),
    "failed": ("danger", "x-circle-fill"),
    "timeout": ("danger", "clock-fill"),
    "killed": ("danger", "stop-circle-fill"),
    "refused": ("danger", "slash-circle-fill"),
    "unresolved": ("warning", "question-circle-fill"),
    "running": ("info", "arrow-repeat"),
    "sending": ("warning", "hourglass-split"),
}
#: most tags of a row that are shown; the others are counted
TAGS_MAX = 2
#: cached tags
CHIPS_KEPT = 4_096
#: cached schedules, all languages together
SCHEDULES_KEPT = 4_096


def cut(text: str, href: str = "") -> Markup:
    """Return text for one line, as a link if there is an address; a longer one has itself as its title."""
    html = escape(text)
    title = f' title="{html}"' if len(text) > SHORT else ""
    if href:
        # All is escaped above.
        return Markup(f'<a class="cut" href="{escape(href)}"{title}>{html}</a>')  # nosec B704
    return Markup(f'<span class="cut"{title}>{html}</span>')  # nosec B704  # escaped above


def cell_finder(
    tag_url_prefix: str, failing: Mapping[int, Failing[Run]]
) -> Callable[[JobRow, Markup], tuple[object, ...]]:
    """Return a function that finds the cells of a row from it and its cell of the last run.

    A tag is a link to ``tag_url_prefix`` with its name. ``failing``: the failing jobs, by id.
    """
    schedule_of, job_base = schedule_writer(), url_for("jobs.show", job_id=0)[:-1]
    marks = {word: _mark(*MARKS[word], SIGNS[word][2]) for word in MARKS}
    never = _mark("none", "circle", _("Never ran"))
    code_marks = {
        CodeState.MANAGED: _mark("code", "code-slash", _("Managed by code")),
        CodeState.DRIFTED: _mark("code warning", "code-slash", _("Differs from its code")),
    }

    def find(row: JobRow, last: Markup) -> tuple[object, ...]:
        job = row.job
        is_on, is_bean, handler = job.trigger_status == 1, job.glue_type == "BEAN", job.executor_handler or ""
        texts = (
            marks.get(outcome(failing[job.id].last if job.id in failing else row.last), never),
            cut(job.job_desc, f"{job_base}{job.id}"),
            code_marks[row.code] if row.code else "",
            cut(row.group.title if row.group else str(job.job_group)),
            str(row.addresses),
            _tags(row.tags, tag_url_prefix),
            schedule_of(job),
            cut(job.schedule_conf or ""),
            cut((handler or "–") if is_bean else str(GLUE_TYPES.get(job.glue_type, job.glue_type))),
            "" if is_bean else cut(handler),
            cut(job.author or ""),
            (next_time_label(job.trigger_next_time) or instant(job.trigger_next_time)) if is_on else "",
            last,
        )
        rights = (row.may_operate, row.may_edit, row.may_kill)
        has_schedule, opens_code = job.schedule_type != ScheduleType.NONE, row.may_glue and not is_bean
        flags = (
            row.addresses > 0,
            not is_bean and handler != "",
            row.is_starred,
            is_on,
            *rights,
            has_schedule,
        )
        return job.id, *texts, *flags, opens_code

    return find


def last_finder(failing: Mapping[int, Failing[Run]]) -> Callable[[JobRow, str], tuple[object, ...]]:
    """Return a function that finds the parts of the last run's cell from a row and the run's reason."""
    draw = strip_drawer()

    def find(row: JobRow, why: str) -> tuple[object, ...]:
        last, word = row.last, outcome(row.last)
        mute_end = muted_until(row.muted_until_ms) if row.muted_until_ms else ""
        out = row.out if row.out > 1 or word != "running" else 0
        start, strip = (instant(last.trigger_time), draw(row.runs)) if last else ("", "")
        times, title = "", ""
        if failures := failing.get(row.job.id):
            times, title = failures_in_a_row(failures, last), failing_title(failures)
        texts = (why, start, str(out), str(row.waiting), mute_end, strip, times, title)
        flags = (why != "", out > 0, row.waiting > 0, mute_end != "", times != "", title != "")
        return last.id if last else 0, *texts, word, *flags

    return find


def _mark(kind: str, glyph: str, label: object) -> Markup:
    """Return an icon with its meaning as its name."""
    return Markup('<i class="bi bi-{} job-state {}" role="img" aria-label="{}" title="{}"></i>').format(
        glyph, kind, label, label
    )


def _tags(tags: Sequence[str], base: str) -> Markup:
    """Return the first tags as links, and how many others there are."""
    chips = Markup(" ").join(chip(tag, base) for tag in tags[:TAGS_MAX])
    if len(tags) <= TAGS_MAX:
        return chips
    others = ", ".join(tags[TAGS_MAX:])
    return chips + Markup(' <span class="chip" title="{}">+{}</span>').format(others, len(tags) - TAGS_MAX)


@lru_cache(CHIPS_KEPT)
def chip(tag: str, base: str) -> Markup:
    """Return a tag as a link to the jobs with it; ``base`` is the address of their list up to the tag."""
    return Markup('<a class="chip" href="{}{}" title="{}">{}</a>').format(base, quote(tag), tag, tag)


def schedule_writer() -> Callable[[Job | ListedJob], Markup]:
    """Return a function that writes on one line when a job runs: its schedule in words, the expression."""
    language = language_of_request()

    def write(job: Job | ListedJob) -> Markup:
        kind, conf, zone = job.schedule_type or "", job.schedule_conf or "", job.time_zone or ""
        days = rule_text(job.calendar)
        return _schedule(kind, conf, zone, language, after=job.runs_after or "", days=days)

    return write


def schedule_words(job: Job | ListedJob) -> str:
    """Return what a schedule means in the reader's language; empty if there are no words for it."""
    if job.schedule_type == ScheduleType.NONE:
        return ""
    return _words(job.schedule_type or "", job.schedule_conf or "", language_of_request())


@lru_cache(SCHEDULES_KEPT)
def _schedule(kind: str, conf: str, time_zone: str, language: str, *, after: str, days: str) -> Markup:
    value = parse_runs_after(after)
    predecessors = _("after %(ids)s", ids=comma_list(map(str, value.jobs))) if value is not None else ""
    if kind == ScheduleType.NONE:
        if not predecessors:
            return Markup('<span class="muted">{}</span>').format(_("none"))
        predecessors = predecessors[:1].upper() + predecessors[1:]
        return Markup('<div class="cut" title="{}">{}</div>').format(predecessors, predecessors)
    expression = conf if kind in {ScheduleType.CRON, ScheduleType.AT} else f"{kind} {conf}"
    words = _words(kind, conf, language)
    title = " · ".join(text for text in (words, days, expression, time_zone, predecessors) if text)
    if not words:
        return Markup('<div class="cut mono" title="{}">{}</div>').format(title, expression)
    return Markup('<div class="cut" title="{}">{} <span class="mono second">{}</span></div>').format(
        title,
        "\N{NO-BREAK SPACE}· ".join(text for text in (words, days, predecessors) if text),
        " ".join(text for text in (expression, time_zone) if text),
    )


def _words(kind: str, conf: str, language: str) -> str:
    """Return what a schedule means; empty if there are no words for it."""
    match kind:
        case ScheduleType.CRON:
            words = describe(conf, language)
            return words if words != conf else ""
        case ScheduleType.AT:
            return _("Once")
        case _:
            return interval_words(kind, conf)
