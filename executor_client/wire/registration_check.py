"""Wire protocol of ``registryCheck``, an extension of this project, for both sides.

``POST /api/registryCheck`` has the body of a registration. The console stores nothing: it looks for the
executor group, calls the address back once (``/beat``, with the token of the request) and reports both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CHECK_ACTION = "registryCheck"


@dataclass(frozen=True, slots=True)
class RegistrationCheck:
    """A console's report about a registration that it would accept."""

    #: an executor group with the app name exists
    has_group: bool
    #: the group takes its addresses from registrations, or its manual list has this one
    is_listed: bool = False
    #: the console called the address back; only if it would send runs there
    was_called: bool = False
    #: why the call failed; "" if an executor answered it
    problem: str = ""

    def to_wire(self) -> dict[str, Any]:
        """Return the ``content`` of the reply."""
        return {
            "group": self.has_group,
            "listed": self.is_listed,
            "called": self.was_called,
            "problem": self.problem,
        }

    @classmethod
    def from_wire(cls, content: Any) -> "RegistrationCheck | None":
        """Parse the ``content`` of a reply; None if it is something else."""
        if not isinstance(content, Mapping) or "group" not in content:
            return None
        return cls(
            content["group"] is True,
            content.get("listed") is True,
            content.get("called") is True,
            str(content.get("problem") or ""),
        )
