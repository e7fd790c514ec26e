"""Placeholders: the parts of a template between its literal texts, as they are parsed."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

#: one step into a JSON value: the name of a member, or an index
PathStep = str | int


class Period(StrEnum):
    """Period whose first or last day or second a step goes to."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    HOUR = "hour"


class Fact(StrEnum):
    """What each run has."""

    JOB_ID = "job.id"
    JOB_NAME = "job.name"
    RUN_ID = "run.id"
    SHARD_INDEX = "shard.index"
    SHARD_TOTAL = "shard.total"


class Epoch(StrEnum):
    """Unit of a time that is written as a number since 1970."""

    MILLISECONDS = "epoch_ms"
    SECONDS = "epoch_s"


class Origin(StrEnum):
    """Where a text comes from that a path can be applied to."""

    PARENT = "parent"
    PARENTS = "parents"
    SHARDS = "shards"
    #: the parameter of the run itself
    OWN = "param"


@dataclass(frozen=True, slots=True)
class Shift:
    """Step by one of these numbers, negative into the past: ``-1d``."""

    months: int = 0
    days: int = 0
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """Step to the begin or end of a period: ``.month.first``."""

    period: Period
    is_last: bool


@dataclass(frozen=True, slots=True)
class TimeValue:
    """Logical time, moved and written: ``${time-1d:yyyy-MM-dd}``. ``zone``: empty for that of the job."""

    at: str
    steps: tuple[Shift | Edge, ...]
    zone: str
    #: tokens of the pattern, or the unit of a number
    form: "tuple[Letters | str, ...] | Epoch"


@dataclass(frozen=True, slots=True)
class Letters:
    """Letters of a pattern, such as ``yyyy``; the other tokens of a pattern are literal texts."""

    text: str


@dataclass(frozen=True, slots=True)
class FactValue:
    """Value that each run has: ``${job.id}``."""

    at: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class VariableValue:
    """Stored variable: ``${var.REGION}``."""

    at: str
    name: str


@dataclass(frozen=True, slots=True)
class Secret:
    """Secret, which stays a placeholder until the run is sent: ``${secret.TOKEN}``."""

    at: str
    name: str


@dataclass(frozen=True, slots=True)
class GivenValue:
    """Result or parameter of other runs, or a part of it: ``${parent.result.rows[0].id:-none}``."""

    at: str
    origin: Origin
    #: of PARENTS: key or id of the job
    key: str
    is_result: bool
    path: tuple[PathStep, ...]
    #: the path as written, for errors
    path_text: str
    #: None: there is none
    default: str | None


#: what only the run itself will have
Unknown = Fact | Origin
Placeholder = TimeValue | FactValue | VariableValue | Secret | GivenValue
Piece = str | Placeholder


@dataclass(frozen=True, slots=True)
class Names:
    """What the placeholders of a template refer to, so that only this has to be read."""

    variables: frozenset[str]
    secrets: frozenset[str]
    #: keys or ids of jobs
    parents: frozenset[str]
    uses_run_id: bool
    uses_parent: bool
    uses_shards: bool


def names_of(pieces: Iterable[Piece]) -> Names:
    """Return what the placeholders refer to."""
    placeholders = [piece for piece in pieces if not isinstance(piece, str)]
    values = [item for item in placeholders if isinstance(item, GivenValue)]
    origins = {item.origin for item in values}
    return Names(
        variables=frozenset(item.name for item in placeholders if isinstance(item, VariableValue)),
        secrets=frozenset(item.name for item in placeholders if isinstance(item, Secret)),
        parents=frozenset(item.key for item in values if item.origin is Origin.PARENTS),
        uses_run_id=any(isinstance(item, FactValue) and item.fact is Fact.RUN_ID for item in placeholders),
        uses_parent=Origin.PARENT in origins,
        uses_shards=Origin.SHARDS in origins,
    )
