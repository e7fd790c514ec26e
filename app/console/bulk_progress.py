"""How far a change of several jobs is. It travels in the form from request to request, so that nothing needs to be kept."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.domain.texts import N_
from app.errors import InvalidInput
from app.services.job_bulk import MATCHING_MAX

TORN = N_("The form is incomplete: begin again at the list of jobs")


@dataclass(slots=True)
class Progress:
    """What is changed, in its order, and what became of the first of it."""

    ids: list[int]
    names: dict[int, str]
    #: how many have had their turn
    count: int = 0
    #: what was refused, in the reader's language
    errors: dict[int, str] = field(default_factory=dict)

    @property
    def rest(self) -> Sequence[int]:
        """What comes next."""
        return self.ids[self.count :]

    def note(self, job_id: int, error: str) -> None:
        """Take the next one off; ``error`` is empty where it was done."""
        self.count += 1
        if error:
            self.errors[job_id] = error

    def dump(self) -> str:
        """Return it as the text of a form's field."""
        named = [[job_id, self.names.get(job_id, ""), self.errors.get(job_id, "")] for job_id in self.ids]
        return json.dumps([self.count, named], ensure_ascii=False, separators=(",", ":"))


def read_progress(text: str) -> Progress:
    """Return what ``dump`` wrote; raises InvalidInput where it is something else."""
    try:
        count, named = json.loads(text)
        rows = [(int(job_id), str(name), str(error)) for job_id, name, error in named]
        read = Progress([row[0] for row in rows], {row[0]: row[1] for row in rows}, int(count), {row[0]: row[2] for row in rows if row[2]})
    except (ValueError, TypeError, RecursionError) as exc:
        raise InvalidInput("state", TORN) from exc
    if not 0 <= read.count < len(read.ids) <= MATCHING_MAX or len(set(read.ids)) < len(read.ids):
        raise InvalidInput("state", TORN)
    return read
