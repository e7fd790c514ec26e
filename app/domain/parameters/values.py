"""Values of one run for the placeholders of a template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.clock import Millis


@dataclass(frozen=True, slots=True)
class GivenRun:
    """Run whose result or parameter is given to another one."""

    run_id: int
    #: message without the lines about child jobs (``result_of``); None: it has none
    result: str | None
    #: as stored; a secret in it is text
    param: str = ""


#: shards of a broadcast by their index; None for one that is missing
Shards = Sequence[GivenRun | None]


@dataclass(frozen=True, slots=True)
class Values:
    """What a run has for its placeholders; only what the names of the template refer to is needed."""

    logical_ms: Millis
    #: IANA name, never empty
    time_zone: str
    job_id: int
    job_name: str
    #: 0: not known yet
    run_id: int = 0
    shard_index: int = 0
    shard_total: int = 1
    #: None: the run has none
    parent: GivenRun | None = None
    #: key or id of a job, as in the placeholder -> its run, or its shards by their index
    parents: Mapping[str, GivenRun | Shards] = field(default_factory=dict)
    #: by their index; None: there is not exactly one broadcast among the predecessors
    shards: Shards | None = None
    #: stored variables by their names
    variables: Mapping[str, str] = field(default_factory=dict)
    #: parameter of the run itself, for a key of its limit
    own_param: str = ""
