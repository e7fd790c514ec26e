"""Terms of the equation with their names, their reasons, and where their runs are listed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flask import url_for

from app.clock import SECOND_MS
from app.console.ui.filters import reader_zone
from app.console.ui.labels import SKIP_REASONS
from app.console.ui.lists.ranges import write_local
from app.console.web.language import lazy_gettext as _l
from app.domain.completeness.equation import DELETED, SCHEDULER, Outcome, Tally, Term
from app.domain.completeness.expected_instants import Interval
from app.domain.enums import NotStarted
from app.store.runs.listing import LogStatus

#: term -> name, tone, icon
TERMS: Final[Mapping[Term, tuple[Any, str, str]]] = {
    Term.ON_TIME: (_l("On time"), "success", "check-circle-fill"),
    Term.LATE: (_l("Late"), "warning", "clock-fill"),
    Term.NOT_STARTED: (_l("Not started"), "danger", "slash-circle-fill"),
    Term.SKIPPED: (_l("Skipped"), "warning", "skip-forward-fill"),
    Term.WAITING: (_l("Waiting"), "warning", "hourglass-split"),
    Term.UNEXPLAINED: (_l("Unexplained"), "danger", "x-circle-fill"),
}
#: what each term means
MEANINGS: Final[Mapping[Term, Any]] = {
    Term.ON_TIME: _l("sent to an executor within a second"),
    Term.LATE: _l("sent to an executor later"),
    Term.NOT_STARTED: _l("no executor took the run, nor a retry of it"),
    Term.SKIPPED: _l("not run, for a reason that was recorded"),
    Term.WAITING: _l("due, but not sent yet"),
    Term.UNEXPLAINED: _l("nothing is known of it; must be 0"),
}
REASONS: Final[Mapping[str, Any]] = {
    NotStarted.REFUSED: _l("refused by the executor"),
    NotStarted.NO_INSTANCE: _l("no instance was online"),
    NotStarted.DRAINED: _l("all instances were drained"),
    NotStarted.OVERLAP: _l("the last run was still running (Discard later)"),
    NotStarted.PARAMETER: _l("the parameter could not be filled in"),
    **SKIP_REASONS,
    DELETED: _l("the job was deleted"),
    SCHEDULER: _l("no scheduler has looked for it yet"),
}
OUTCOMES: Final[Mapping[Outcome, tuple[Any, LogStatus]]] = {
    Outcome.FINISHED: (_l("Finished"), LogStatus.SUCCESS),
    Outcome.FAILED: (_l("Failed"), LogStatus.FAILED),
    Outcome.UNRESOLVED: (_l("Unresolved"), LogStatus.UNRESOLVED),
    Outcome.RUNNING: (_l("Running"), LogStatus.RUNNING),
}
#: terms of runs -> their status in the list of runs
_STATUSES = {
    Term.ON_TIME: LogStatus.ALL,
    Term.LATE: LogStatus.ALL,
    Term.NOT_STARTED: LogStatus.NOT_STARTED,
    Term.WAITING: LogStatus.ALL,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Interval, group and job (0: all) whose rows are listed elsewhere."""

    interval: Interval
    group_id: int = 0
    job_id: int = 0

    def runs(self, status: LogStatus = LogStatus.ALL) -> str:
        """Return the URL of the runs for instants of the interval."""
        zone = reader_zone()
        first, last = self.interval.from_ms, self.interval.until_ms - SECOND_MS
        values: dict[str, Any] = {
            "jobGroup": self.group_id or None,
            "jobId": self.job_id or None,
            "logStatus": int(status) if status is not LogStatus.ALL else None,
            "logical_from": write_local(first, zone).replace(" ", "T"),
            "logical_to": write_local(last, zone).replace(" ", "T"),
        }
        return url_for("logs.index", **values)

    def term(self, term: Term, elsewhere: str) -> str:
        """Return where the instants of a term are listed; ``elsewhere``: those without a run of all jobs."""
        if term is Term.SKIPPED and self.job_id:
            return url_for("jobs.show", job_id=self.job_id, tab="runs", _anchor="skips")
        return self.runs(_STATUSES[term]) if term in _STATUSES else elsewhere


def number_of(tally: Tally, term: Term) -> int:
    """Return the instants of a term."""
    value = getattr(tally, term.value)
    return value.total() if isinstance(value, Counter) else value


def reasons_of(tally: Tally, term: Term) -> list[tuple[str, int]]:
    """Return reasons of a term in words, the most frequent first."""
    value = getattr(tally, term.value)
    if not isinstance(value, Counter):
        return []
    return [(reason_text(reason), count) for reason, count in value.most_common() if count]


def reason_text(reason: str) -> str:
    """Return a reason in the reader's language; an unknown one as it is stored."""
    return str(REASONS.get(reason, reason))
