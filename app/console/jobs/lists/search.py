"""Search field of the job list: the filters that can be typed, and the values of those that have few."""

from collections.abc import Sequence

from app.console.ui.lists.search import Search, choice_field, executor_field, read_terms, text_field
from app.console.web.language import _
from app.domain.lists.job_search import CodeState, LastRun
from app.models.group import Group


def read_search(text: str, groups: Sequence[Group]) -> Search:
    """Return what a text means to a reader who sees these executor groups."""
    return read_terms(
        text,
        (
            executor_field(groups),
            text_field("tag", "tag", _("Tag")),
            text_field("author", "owner", "author", _("Owner")),
            text_field("executorHandler", "handler", "jobhandler"),
            text_field("jobDesc", "description", "name", _("Job description")),
            choice_field(
                "triggerStatus",
                ("status", "schedule", _("Status"), _("Schedule")),
                status_values(),
                aliases={"1": ("on",), "0": ("off",)},
            ),
            choice_field("last", ("last", _("Last run")), last_values()),
            choice_field("code", ("code", _("Code")), code_values()),
        ),
    )


def status_values() -> dict[str, str]:
    """Return value of ``triggerStatus`` -> title."""
    return {"1": _("On"), "0": _("Off")}


def last_values() -> dict[str, str]:
    """Return value of ``last`` -> title."""
    return {
        LastRun.FAILING.value: _("Failing"),
        LastRun.RUNNING.value: _("Running"),
        LastRun.NEVER.value: _("Never ran"),
    }


def code_values() -> dict[str, str]:
    """Return value of ``code`` -> title."""
    return {CodeState.MANAGED.value: _("Managed by code"), CodeState.DRIFTED.value: _("Drifted")}
