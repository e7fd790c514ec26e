"""Answer: what is wrong in one sentence, the most severe first, each part a link to where it is seen."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import url_for

from app.console.ui.completeness import Line
from app.console.ui.filters import number
from app.console.web.language import _, ngettext
from app.domain.report.troubles import Tone, Trouble, tone_of
from app.services.report.attention import SHOWN_OTHERS
from app.services.report.dashboard import Board

#: id of the rows that need attention
ROWS = "#attention"


@dataclass(frozen=True, slots=True)
class Part:
    """Part of the sentence."""

    text: str
    #: empty: there is no page of it
    href: str
    tone: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentence, and its tone: ``success``, ``warning`` or ``danger``."""

    tone: str
    parts: list[Part]
    #: those of its parts of which the rows below are only the first
    more: list[Part]

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong."""
        return self.tone == "success"


def answer_of(board: Board, *, is_admin: bool) -> Answer:
    """Return the answer of a board; without trouble the sentence says that all is well."""
    parts = {
        finding.trouble: Part(
            _WORDS[finding.trouble](board, finding.number),
            _href(finding.trouble, board, is_admin),
            finding.tone,
        )
        for finding in board.findings
    }
    more = [part for trouble, part in parts.items() if _count_rows(trouble, board) > SHOWN_OTHERS]
    tone = tone_of(board.findings)
    if tone in (None, Tone.NOTE):
        return Answer("success", [*_calm_parts(board), *parts.values()], more)
    return Answer(str(tone), list(parts.values()), more)


def with_yesterday(answer: Answer, yesterday: Line | None) -> Answer:
    """Return the answer with what is unexplained of yesterday, as a part of its own."""
    if yesterday is None or not yesterday.tone:
        return answer
    part = Part(yesterday.text, yesterday.href, yesterday.tone)
    return Answer("danger", [part] if answer.is_well else [*answer.parts, part], answer.more)


def _count_rows(trouble: Trouble, board: Board) -> int:
    """Return how many rows a trouble has, of which SHOWN_OTHERS are shown; 0: its rows are counted apart."""
    attention = board.attention
    rows = {
        Trouble.NO_EXECUTOR: len(attention.offline),
        Trouble.OFFLINE: len(attention.offline),
        Trouble.DRAINED: len(attention.drained_groups),
        Trouble.INCIDENT: attention.incident_count,
        Trouble.UNRESOLVED: attention.unresolved_count,
        Trouble.CHANNEL: len(attention.channels),
    }
    return rows.get(trouble, 0)


def _calm_parts(board: Board) -> list[Part]:
    if board.has_failed:
        failures = url_for("logs.index", logStatus=2, range="day")
        return [
            Part(_("No job is failing now."), "", ""),
            Part(_("Runs failed in the last 24 hours"), failures, Tone.NOTE),
        ]
    return [Part(_("All is well."), "", "")]


def _failing(board: Board, count: int) -> str:
    if board.jobs < count:  # deleted since
        return ngettext("%(num)d job is failing", "%(num)d jobs are failing", count)
    return ngettext(
        "%(n)s of %(all)s jobs is failing",
        "%(n)s of %(all)s jobs are failing",
        count,
        n=number(count),
        all=number(board.jobs),
    )


def _clock(board: Board, count: int) -> str:
    if not board.nodes.skewed_nodes:
        return _("The clock of a scheduler is wrong.")
    return ngettext(
        "The clock of %(num)d scheduler is wrong", "The clocks of %(num)d schedulers are wrong", count
    )


#: trouble -> its words; board and number of those that have it
_WORDS: dict[Trouble, Callable[[Board, int], str]] = {
    Trouble.CLOCK: _clock,
    Trouble.STUCK: lambda _board, _count: _("No scheduler is scanning."),
    Trouble.NO_SCHEDULER: lambda _board, _count: _("No scheduler is running."),
    Trouble.NO_EXECUTOR: lambda _board, _count: _("No executor is online"),
    Trouble.FAILING: _failing,
    Trouble.INCIDENT: lambda _board, count: ngettext(
        "%(num)d incident is open", "%(num)d incidents are open", count
    ),
    Trouble.OFFLINE: lambda _board, count: ngettext(
        "%(num)d executor is offline", "%(num)d executors are offline", count
    ),
    Trouble.DRAINED: lambda _board, count: ngettext(
        "%(num)d executor is drained", "%(num)d executors are drained", count
    ),
    Trouble.LATE: lambda _board, count: ngettext("%(num)d run is late", "%(num)d runs are late", count),
    Trouble.CONSOLE_CLOCK: lambda _board, count: ngettext(
        "The clock of %(num)d console is wrong", "The clocks of %(num)d consoles are wrong", count
    ),
    Trouble.UNRESOLVED: lambda _board, count: ngettext(
        "%(num)d run is unresolved", "%(num)d runs are unresolved", count
    ),
    Trouble.CHANNEL: lambda _board, count: ngettext(
        "%(num)d alarm channel is broken", "%(num)d alarm channels are broken", count
    ),
    Trouble.UNMAILED: lambda _board, count: ngettext(
        "alarm mails of %(num)d job are not sent", "alarm mails of %(num)d jobs are not sent", count
    ),
    Trouble.PASSWORD: lambda _board, count: ngettext(
        "%(num)d user logs in with a common password",
        "%(num)d users log in with common passwords",
        count,
    ),
    Trouble.DRIFT: lambda _board, count: ngettext(
        "%(num)d job differs from its code", "%(num)d jobs differ from their code", count
    ),
}


def _href(trouble: Trouble, board: Board, is_admin: bool) -> str:
    """Return where a trouble is seen in full; of what has a page for administrators only, its rows."""
    attention = board.attention
    match trouble:
        case Trouble.CLOCK | Trouble.CONSOLE_CLOCK | Trouble.STUCK:
            return "#nodes" if board.nodes.states else ""
        case Trouble.NO_SCHEDULER:
            return ""
        case Trouble.FAILING:
            return url_for("jobs.index", last="failing")
        case Trouble.INCIDENT:
            return url_for("incidents.index")
        case Trouble.OFFLINE if len(attention.offline) == 1:
            return url_for("group_page.show", group_id=attention.offline[0].group.id)
        case Trouble.DRAINED if len(attention.drained_groups) == 1:
            return url_for("group_page.show", group_id=attention.drained_groups[0].id)
        case Trouble.NO_EXECUTOR | Trouble.OFFLINE | Trouble.DRAINED:
            return url_for("groups.index") if is_admin else ROWS
        case Trouble.LATE:
            return url_for("logs.index")
        case Trouble.UNRESOLVED:
            return url_for("logs.index", logStatus=9, range="all")
        case Trouble.CHANNEL | Trouble.UNMAILED:
            return url_for("alarm_channels.index") if is_admin else ROWS
        case Trouble.PASSWORD:
            return url_for("users.index", weak=1)
        case Trouble.DRIFT:
            return url_for("jobs.index", code="drifted")
