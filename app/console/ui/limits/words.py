"""Limits in words: what a job takes of them, and the settings of a job that concern them."""

import json
from typing import Any, NamedTuple

from flask import url_for

from app.console.ui.filters import listed
from app.console.web.language import ngettext
from app.domain.enums import LimitKind
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.structures import read_structure


class Share(NamedTuple):
    """Share of a job in a named limit."""

    limit: str
    weight: int

    @property
    def text(self) -> str:
        """``reporting database``, or ``reporting database × 2`` where a run takes several slots."""
        return self.limit if self.weight == 1 else f"{self.limit} × {self.weight}"


def shares_in(stored: str | None) -> list[Share]:
    """Return the named limits of a job from their JSON text."""
    return [Share(**member) for member in read_structure(FIELD_OF["limits"], stored)]


def limits_value(value: Any) -> str:
    """Return stored limits, as JSON text or list, in words; a dash for none."""
    text = value if isinstance(value, str) else json.dumps(value or [])
    return listed(share.text for share in shares_in(text)) or "–"


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
