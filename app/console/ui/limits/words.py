"""Limits in words: what a job takes of them, and the settings of a job that concern them."""

import json
from typing import Any, NamedTuple

from flask import url_for
from markupsafe import Markup, escape

from app.console.ui.filters import comma_list
from app.console.web.language import _, ngettext
from app.domain.enums import LimitKind
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.structures import read_structure
from app.domain.limits.waits import WaitReason
from app.services.runs.waiting import WaitedLimit


class Share(NamedTuple):
    """Share of a job in a named limit."""

    limit: str
    weight: int

    @property
    def text(self) -> str:
        """``reporting database``, or ``reporting database × 2`` where a run takes several slots."""
        return self.limit if self.weight == 1 else f"{self.limit} × {self.weight}"


def shares_in(text: str | None) -> list[Share]:
    """Return the named limits of a job from their JSON text."""
    return [Share(**member) for member in read_structure(FIELD_OF["limits"], text)]


def limits_value(value: Any) -> str:
    """Return stored limits, as JSON text or list, in words; a dash for none."""
    text = value if isinstance(value, str) else json.dumps(value or [])
    return comma_list(share.text for share in shares_in(text)) or "–"


def slots_text(slots: int) -> str:
    """Return a number of slots in words."""
    return ngettext("%(num)d slot", "%(num)d slots", slots)


def limit_address(kind: str, of_id: int) -> str:
    """Return the address of a limit's page; ``of_id`` is that of the named limit, job or group."""
    match kind:
        case LimitKind.JOB:
            return url_for("limits.of_job", job_id=of_id)
        case LimitKind.GROUP:
            return url_for("limits.of_group", group_id=of_id)
    return url_for("limits.show", limit_id=of_id)


def wait_words(wait: WaitedLimit | None, limit: Markup) -> Markup:
    """Return what a run waits for, with links to the ``limit`` and to the runs that have its slots."""
    if wait is None:
        return escape(_("it waits for a limit"))
    text = escape(_wait_text(wait)) % {"used": wait.used, "slots": wait.slots, "limit": limit}
    if not wait.log_ids or _is_behind(wait):
        return text
    links = [
        Markup('<a href="{}">{}</a>').format(url_for("logs.show", log_id=log_id), log_id)
        for log_id in wait.log_ids
    ]
    runs = escape(ngettext("run %(runs)s", "runs %(runs)s", len(links), runs="%(runs)s"))
    return text + escape(_(": ")) + runs % {"runs": escape(_(", ")).join(links)}


def _is_behind(wait: WaitedLimit) -> bool:
    """Return whether there is room, but for runs that come first."""
    return wait.reason is WaitReason.BEHIND and wait.used < wait.slots


def _wait_text(wait: WaitedLimit) -> str:
    if wait.reason is WaitReason.REPLACING:
        return _("the run in progress is being killed")
    if _is_behind(wait):
        return _("other runs that wait for %(limit)s come first")
    if wait.used == wait.slots == 1:
        return _("the slot of %(limit)s is taken")
    return _("%(used)s of %(slots)s slots of %(limit)s are taken")


def limit_phrase(kind: str, of_id: int, name: str) -> Markup:
    """Return a limit by its name, or as that of a job or executor, with a link to its page."""
    text = _("this job") if kind == LimitKind.JOB else name
    if kind == LimitKind.GROUP:
        text = _("executor %(name)s", name=name)
    return Markup('<a href="{}">{}</a>').format(limit_address(kind, of_id), text)
