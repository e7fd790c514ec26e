"""What a job runs after: the value of `xxl_job_info.runs_after`."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from app.clock import SECOND_MS, Millis
from app.domain.rounds.kinds import AtDeadline, RoundKind, RoundRule, ShardRule

#: name of the field, also in errors
RUNS_AFTER = "runs_after"
#: most predecessors of a job
JOBS_MAX = 100
#: the largest id of a job
ID_MAX = 2**31 - 1
#: longest wait of a round, and the one without another: seconds
DEADLINE_MAX_S, DEADLINE_S = 31 * 86_400, 86_400
#: end of the wait of a round that has no deadline of its own
LONGEST_MS: Millis = 30 * 86_400_000


class RunsAfter(NamedTuple):
    """Predecessors of a job, and when it runs after them."""

    #: ids of the predecessors
    jobs: tuple[int, ...]
    rule: RoundRule = RoundRule.ALL_SUCCEEDED
    #: of the rule K_OF_N: how many have to succeed
    k: int = 1
    round: RoundKind = RoundKind.LOGICAL_TIME
    shards: ShardRule = ShardRule.ALL
    #: of the shard rule AT_LEAST: how many have to succeed
    shards_k: int = 1
    deadline_s: int = DEADLINE_S
    at_deadline: AtDeadline = AtDeadline.DROP

    @property
    def wait_ms(self) -> Millis:
        """How long a round waits; one that goes on waiting ends some day, too."""
        is_endless = not self.deadline_s or self.at_deadline is AtDeadline.WAIT
        return LONGEST_MS if is_endless else self.deadline_s * SECOND_MS

    def has_same_rounds(self, other: "RunsAfter | None") -> bool:
        """Whether rounds that have begun by the other value go on by this one."""
        return other is not None and (set(self.jobs), *self.of_rounds) == (set(other.jobs), *other.of_rounds)

    @property
    def of_rounds(self) -> tuple[object, ...]:
        """What decides which arrivals a round has, besides its jobs."""
        return self.round, self.shards, self.shards_k if self.shards is ShardRule.AT_LEAST else 0


@lru_cache(maxsize=1_024)
def parse_runs_after(text: str | None) -> RunsAfter | None:
    """Return the value of a stored text; None: it is empty, or another program has stored it."""
    try:
        value: Any = json.loads(text or "null")
        if not isinstance(value, dict):
            return None
        value["jobs"] = tuple(int(job_id) for job_id in value["jobs"])
        typed_values = {name: kind(value[name]) for name, kind in _KINDS.items() if name in value}
        rule = RunsAfter(**{name: value[name] for name in RunsAfter._fields if name in value} | typed_values)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    is_readable = rule.jobs and all(abs(job_id) <= ID_MAX for job_id in rule.jobs)
    return _within_bounds(rule) if is_readable else None


def _within_bounds(rule: RunsAfter) -> RunsAfter:
    """Return the value with numbers that another program may have stored brought into their bounds."""
    deadline_s = min(max(rule.deadline_s, 0), DEADLINE_MAX_S)
    return rule._replace(k=max(rule.k, 1), shards_k=max(rule.shards_k, 1), deadline_s=deadline_s)


def predecessors_of(text: str | None) -> tuple[int, ...]:
    """Return the jobs that a stored or entered text names."""
    runs_after = parse_runs_after(text)
    return runs_after.jobs if runs_after is not None else ()


def named_jobs(value: Any) -> list[Any]:
    """Return the ids or keys of the predecessors in a JSON value of the member, which may be null."""
    return list(value["jobs"]) if isinstance(value, dict) and isinstance(value.get("jobs"), list) else []


def with_named(value: Any, jobs: Iterable[Any]) -> Any:
    """Return a JSON value of the member with other ids or keys; null where there are none."""
    unique = list(dict.fromkeys(jobs))
    return {**value, "jobs": unique} if unique else None


def with_ids(text: str, ids: Mapping[int, int]) -> str:
    """Return a stored text with other ids of its predecessors, of those that have one."""
    if parse_runs_after(text) is None:
        return text
    value = json.loads(text)
    jobs = [ids.get(job_id, job_id) for job_id in value["jobs"]]
    return json.dumps(value | {"jobs": jobs}, ensure_ascii=False, separators=(",", ":"))


_KINDS: dict[str, Any] = {
    "rule": RoundRule,
    "round": RoundKind,
    "shards": ShardRule,
    "at_deadline": AtDeadline,
    "k": int,
    "shards_k": int,
    "deadline_s": int,
}
