"""Views of jobs and runs: typed attributes of the API's objects."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from executor_client.api.client import OPEN_STATES
from executor_client.api.session import Item

State = Literal[
    "waiting", "running", "succeeded", "failed", "timed_out", "killed", "not_started", "unresolved"
]
#: all states of runs that ended without success
UNSUCCESSFUL = "unsuccessful"
#: states to list runs by
ListedState = Literal[State, "unsuccessful"]


@dataclass(frozen=True)
class Job:
    """A job as it was when it was read."""

    id: int
    description: str
    handler: str
    #: AppName of its executor group
    group: str
    owner: str
    #: whether its schedule is on
    enabled: bool
    tags: tuple[str, ...]
    #: the next scheduled time; None: there is none
    next_time: datetime | None
    #: everything that the API returned, with its names
    data: Item = field(repr=False, compare=False)

    @classmethod
    def of(cls, item: Item, group: str) -> "Job":
        """Return the job of an answer."""
        times = item.get("next_times") or []
        return cls(
            item["id"],
            item["description"],
            item["handler"],
            group,
            item["owner"],
            item["enabled"],
            tuple(item.get("tags") or ()),
            instant(times[0]) if times else None,
            item,
        )


@dataclass(frozen=True)
class PreviewedRun:
    """What a run to come would get as its parameter."""

    logical_time: datetime
    #: secrets are only named; None: it cannot be filled in
    param: str | None
    #: why it cannot be filled in
    reason: str

    @classmethod
    def of(cls, item: Item) -> "PreviewedRun":
        """Return the run of an answer."""
        at = instant(item["logical_time"])
        assert at is not None  # The API has one for each.
        return cls(at, item["param"], item["reason"])


class RunView:
    """State of a run when it was last read."""

    def __init__(self, data: Item) -> None:
        #: everything that the API returned, with its names
        self.data = data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of job {self.job_id}: {self.state}>"

    @property
    def id(self) -> str:
        """Number of the run; while it waits, the id of its trigger, which stays valid."""
        return str(self.data["id"])

    @property
    def job_id(self) -> int:
        """Id of its job."""
        return int(self.data["job_id"])

    @property
    def state(self) -> State:
        """State: waiting, running, or how it ended."""
        return cast(State, self.data["state"])

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state not in OPEN_STATES

    @property
    def succeeded(self) -> bool:
        """Whether it has ended with success."""
        return self.state == "succeeded"

    @property
    def reason(self) -> str:
        """Why it failed or waits, in one line."""
        return str(self.data.get("reason") or "")

    @property
    def message(self) -> str:
        """Text that the executor returned with the result."""
        return str(self.data.get("message") or "")

    @property
    def result(self) -> Any:
        """The message as a JSON value, for handlers that return one; else the text."""
        try:
            return json.loads(self.message)
        except ValueError:
            return self.message

    @property
    def param(self) -> str:
        """Parameter it was sent with; empty while it waits."""
        return str(self.data.get("param") or "")

    @property
    def address(self) -> str:
        """Instance it was sent to; empty: none yet, or several."""
        return str(self.data.get("address") or "")

    @property
    def due_at(self) -> datetime | None:
        """When it is due, while it waits."""
        return instant(self.data.get("due_at"))

    @property
    def logical_time(self) -> datetime | None:
        """What it stands for; None: its console is older than logical times."""
        return instant(self.data.get("logical_time"))

    @property
    def started_at(self) -> datetime | None:
        """When it was sent."""
        return instant(self.data.get("started_at"))

    @property
    def ended_at(self) -> datetime | None:
        """When its result arrived."""
        return instant(self.data.get("ended_at"))


def instant(text: Any) -> datetime | None:
    """Return an instant of the API, in UTC; None for null."""
    # Python 3.10 does not read "Z"
    return datetime.fromisoformat(str(text).replace("Z", "+00:00")) if text else None
