"""Rounds in words: rules, states and outcomes, and what a job runs after in sentences."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flask import Flask

from app.clock import SECOND_MS
from app.console.ui.filters import comma_list
from app.console.ui.promise_words import length_text
from app.console.web.language import _, lazy_pgettext
from app.console.web.language import lazy_gettext as _l
from app.domain.rounds.kinds import (
    ArrivalOutcome,
    AtDeadline,
    RoundKind,
    RoundReason,
    RoundRule,
    RoundState,
    ShardRule,
)
from app.domain.rounds.runs_after import DEADLINE_S, RunsAfter, parse_runs_after

#: options of the selects, in their order
RULES: Mapping[RoundRule, str] = {
    RoundRule.ALL_SUCCEEDED: _l("All of them have succeeded"),
    RoundRule.ALL_ENDED: _l("All of them have ended, in whatever way"),
    RoundRule.ANY_SUCCEEDED: _l("One of them has succeeded"),
    RoundRule.K_OF_N: _l("A number of them have succeeded"),
}
KINDS: Mapping[RoundKind, str] = {
    RoundKind.LOGICAL_TIME: _l("Runs of the same logical time"),
    RoundKind.DAY: _l("Runs of the same day"),
    RoundKind.SINCE_LAST: _l("Runs since its own last run"),
}
SHARDS: Mapping[ShardRule, str] = {
    ShardRule.ALL: _l("All shards have succeeded"),
    ShardRule.AT_LEAST: _l("A number of shards have succeeded"),
    ShardRule.ANY: _l("One shard has succeeded"),
}
AT_DEADLINES: Mapping[AtDeadline, str] = {
    AtDeadline.DROP: _l("It does not run"),
    AtDeadline.RUN: _l("It runs all the same, marked as incomplete"),
    AtDeadline.WAIT: _l("It goes on waiting, 30 days at most"),
}
ROUND_STATES: Mapping[RoundState, str] = {
    RoundState.OPEN: lazy_pgettext("round", "Waiting"),
    RoundState.STARTED: lazy_pgettext("round", "Started"),
    RoundState.NOT_RUN: _l("Not run"),
}
ROUND_REASONS: Mapping[RoundReason, str] = {
    RoundReason.PREDECESSOR: _l("a predecessor did not succeed"),
    RoundReason.DEADLINE: _l("its deadline passed"),
    RoundReason.EDITED: _l("what it runs after was changed"),
    RoundReason.EXCUSED: _l("no predecessor had a run to do"),
    RoundReason.RESTORED: _l("the database was restored from a backup"),
}
OUTCOMES: Mapping[ArrivalOutcome, str] = {
    ArrivalOutcome.SUCCEEDED: _l("Succeeded"),
    ArrivalOutcome.FAILED: _l("Failed"),
    ArrivalOutcome.RETRYING: _l("Failed, will be retried"),
    ArrivalOutcome.UNRESOLVED: _l("Unresolved"),
    ArrivalOutcome.NOT_RUN: _l("Not run"),
    ArrivalOutcome.EXCUSED: _l("Does not belong to it"),
}
_WHEN: Mapping[RoundRule, Callable[[int], str]] = {
    RoundRule.ALL_SUCCEEDED: lambda _k: _("Runs once all of them have succeeded."),
    RoundRule.ALL_ENDED: lambda _k: _("Runs once all of them have ended, in whatever way."),
    RoundRule.ANY_SUCCEEDED: lambda _k: _("Runs once one of them has succeeded."),
    RoundRule.K_OF_N: lambda k: _("Runs once %(k)s of them have succeeded.", k=k),
}
_TOGETHER: Mapping[RoundKind, Callable[[], str]] = {
    RoundKind.LOGICAL_TIME: lambda: _("Runs of the same logical time belong together."),
    RoundKind.DAY: lambda: _("Runs of the same day belong together."),
    RoundKind.SINCE_LAST: lambda: _("Runs since its own last run belong together."),
}


def foreign_name() -> str:
    """Return what a job is called of a group that the reader may not view."""
    return _("a job of another group")


def rule_text(value: RunsAfter | None, *, in_chain: bool = False) -> str:
    """Return when a job runs: by which rule, which runs belong together, and what becomes of a late round.

    None: it runs after no job, and the text is empty. ``in_chain``: the round is one of a chain.
    """
    if value is None:
        return ""
    together = _("Runs of its chain belong together.") if in_chain else _TOGETHER[value.round]()
    sentences = [_when(value), together, *_shards(value), _deadline(value)]
    return " ".join(sentences).replace("。 ", "。")


def _when(value: RunsAfter) -> str:
    if len(value.jobs) == 1:
        is_any_end = value.rule is RoundRule.ALL_ENDED
        return (
            _("Runs once it has ended, in whatever way.") if is_any_end else _("Runs once it has succeeded.")
        )
    return _WHEN[value.rule](min(value.k, len(value.jobs)))


def _shards(value: RunsAfter) -> Iterable[str]:
    if value.shards is ShardRule.ANY:
        yield _("Of a broadcast one shard has to succeed.")
    elif value.shards is ShardRule.AT_LEAST:
        yield _("Of a broadcast %(k)s shards have to succeed.", k=value.shards_k)


def _deadline(value: RunsAfter) -> str:
    if not value.deadline_s or value.at_deadline is AtDeadline.WAIT:
        return _("It waits until they arrive, 30 days at most.")
    length = length_text(value.deadline_s * SECOND_MS)
    if value.at_deadline is AtDeadline.RUN:
        return _("It waits %(time)s at most and then runs all the same.", time=length)
    return _("It waits %(time)s at most and then does not run.", time=length)


def parts_of(value: RunsAfter) -> list[str]:
    """Return what a job runs after in short, without what is the default: ``after 7, 9 · same day``."""
    parts = [_("after %(ids)s", ids=comma_list(map(str, value.jobs)))]
    if value.rule is RoundRule.K_OF_N:
        parts.append(_("%(k)s of them", k=min(value.k, len(value.jobs))))
    elif value.rule is not RoundRule.ALL_SUCCEEDED:
        parts.append(str(RULES[value.rule]))
    if value.round is not RoundKind.LOGICAL_TIME:
        parts.append(str(KINDS[value.round]))
    if value.deadline_s != DEADLINE_S:
        parts.append(_("waits %(time)s at most", time=length_text(value.wait_ms)))
    return parts


def runs_after_value(value: Any) -> str:
    """Return a stored value, as JSON text or object, in words; a dash for none.

    Its jobs are ids, or the keys of jobs as code.
    """
    members = json.loads(value) if isinstance(value, str) else value
    names = members.get("jobs", []) if isinstance(members, dict) else []
    rule = parse_runs_after(json.dumps({**(members or {}), "jobs": [*range(len(names))]}))
    if rule is None:
        return "–"
    ids = _("after %(ids)s", ids=comma_list(names))
    return f"{ids}{_(': ')}{rule_text(rule)}"


def init_app(app: Flask) -> None:
    """Make the words available to the templates."""
    tables: dict[str, Mapping[Any, str]] = {
        "round_state_title": ROUND_STATES,
        "round_reason": ROUND_REASONS,
        "outcome_title": OUTCOMES,
    }
    for name, titles in tables.items():
        app.add_template_filter(lambda value, titles=titles: str(titles.get(value, value or "–")), name)
