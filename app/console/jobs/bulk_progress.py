"""How far a change of several jobs is. It travels in the form from request to request, so that nothing needs to be kept.

It is sealed: what was asked first, and what became of the jobs so far, is not for the browser to choose.
"""

import hmac
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.console.web.current import seal
from app.domain.texts import N_
from app.errors import InvalidInput

SEAL_LENGTH = 64
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
    #: what the same question did before, and was left alone this time
    already: set[int] = field(default_factory=set)
    #: names the question: a form that is sent twice asks for the same
    key: str = field(default_factory=lambda: new_key())

    @property
    def rest(self) -> Sequence[int]:
        """What comes next."""
        return self.ids[self.count :]

    @property
    def done(self) -> int:
        """How many were changed."""
        return self.count - len(self.errors) - len(self.already)

    def note(self, job_id: int, error: str, *, already: bool = False) -> None:
        """Take the next one off; ``error`` is empty where it was done."""
        self.count += 1
        if error:
            self.errors[job_id] = error
        if already:
            self.already.add(job_id)

    def dump(self, act: str) -> str:
        """Return it as the text of a form's field, which goes on with this act only."""
        named = [[job_id, self.names.get(job_id, ""), self.errors.get(job_id, "")] for job_id in self.ids]
        text = json.dumps([self.key, self.count, named, sorted(self.already)], separators=(",", ":"))
        return _seal(act, text) + text


def new_key() -> str:
    """Return a name for a question."""
    return secrets.token_hex(16)


def asked_key(text: str) -> str:
    """Return the name a question's form carries; a new one where it carries none."""
    return text if re.fullmatch("[0-9a-f]{32}", text) else new_key()


def read_progress(text: str, act: str) -> Progress:
    """Return what ``dump`` wrote for this login and act; raises InvalidInput where it is something else."""
    sealed, body = text[:SEAL_LENGTH], text[SEAL_LENGTH:]
    if not hmac.compare_digest(sealed.encode("utf-8", "replace"), _seal(act, body).encode()):
        raise InvalidInput("state", TORN)
    key, count, named, *more = json.loads(body)  # a form of before an upgrade knows of nobody queued already
    already = more[0] if more else []
    names, errors = {row[0]: row[1] for row in named}, {row[0]: row[2] for row in named if row[2]}
    return Progress(list(names), names, count, errors, set(already), key)


def _seal(act: str, text: str) -> str:
    return seal("bulk", f"{act}:{text}")
