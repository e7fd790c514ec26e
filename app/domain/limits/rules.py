"""Rules of the limits of a job: which named ones it may use, and what a Java admin would ignore."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from app.domain.limits.key_rules import FIELD as KEY
from app.domain.limits.key_rules import check_key
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: most named limits of a job, and slots that a run takes of one
USES_MAX, WEIGHT_MAX = 10, 10_000
#: name of the field of named limits in errors
LIMITS = "limits"
WITHOUT_JAVA = N_(
    "Runs that a Java admin on the same database starts would not be counted (XXL_JOB_SHARED_WITH_JAVA)"
)


class KnownLimit(NamedTuple):
    """A named limit as the rules of a job need it."""

    id: int
    #: None: jobs of all groups may use it
    group_id: int | None
    slots: int


#: names -> named limits that the actor may see
FindLimits = Callable[[Collection[str]], Mapping[str, KnownLimit]]


class EnteredLimits(NamedTuple):
    """Limits of a job as entered."""

    group_id: int
    max_running: int
    #: JSON text
    limits: str | None
    limit_key: str
    #: refuse what a Java admin on the same database ignores (XXL_JOB_SHARED_WITH_JAVA)
    readable_by_java: bool


def uses_of(text: str | None) -> list[tuple[str, int]]:
    """Return name and weight of the limits in a stored text; none of what its model refuses."""
    try:
        shares = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    uses = [
        (share.get("limit"), share.get("weight", 1))
        for share in (shares if isinstance(shares, list) else ())
        if isinstance(share, dict)
    ]
    return [(name, weight) for name, weight in uses if isinstance(name, str) and type(weight) is int]


def check_limits(draft: EnteredLimits, find_limits: FindLimits) -> None:
    """Raise InvalidInput for what is wrong with the limits of a job, with all errors."""
    errors = InputErrors()
    if draft.readable_by_java:
        with errors:
            _check_without_java(draft)
    uses = uses_of(draft.limits)
    known_limits = find_limits([name for name, _ in uses]) if uses else {}
    for number, (name, weight) in enumerate(uses):
        place = f"{LIMITS}.{number}"
        with errors:
            _check_repeated(place, name, is_repeated=any(other == name for other, _ in uses[:number]))
            check_share(place, name, weight, known_limits.get(name), draft.group_id)
    with errors:
        _check_key(draft)
    errors.raise_all()


def check_moved(text: str | None, group_id: int, find_limits: FindLimits) -> None:
    """Raise InvalidInput if a job that moves to a group would use a limit of another group."""
    uses = uses_of(text)
    known_limits = find_limits([name for name, _ in uses]) if uses else {}
    for name, _weight in uses:
        limit = known_limits.get(name)
        if limit is not None and limit.group_id not in (None, group_id):
            raise InvalidInput("jobGroup", N_('The limit "%(name)s" is of another executor', name=name))


def check_share(place: str, name: str, weight: int, limit: KnownLimit | None, group_id: int) -> None:
    """Raise InvalidInput if jobs of a group cannot take so many slots of a limit."""
    if limit is None:
        problem = N_(
            'There is no limit "%(name)s"; make it first, such as with duetime limits set %(name)s --slots 1',
            name=name,
        )
        raise InvalidInput(f"{place}.limit", problem)
    if limit.group_id not in (None, group_id):
        raise InvalidInput(f"{place}.limit", N_('The limit "%(name)s" is of another executor', name=name))
    if weight > limit.slots:
        problem = N_(
            '%(weight)s is more than the %(slots)s slots of the limit "%(name)s"; take at most %(slots)s',
            weight=weight,
            slots=limit.slots,
            name=name,
        )
        raise InvalidInput(f"{place}.weight", problem)


def _check_repeated(place: str, name: str, *, is_repeated: bool) -> None:
    if is_repeated:
        problem = N_('The limit "%(name)s" is named twice; give it one weight', name=name)
        raise InvalidInput(f"{place}.limit", problem)


def _check_key(draft: EnteredLimits) -> None:
    if not draft.limit_key.strip():
        return
    if not draft.max_running and not uses_of(draft.limits):
        problem = N_("Give the job most runs at once or a named limit first; without them nothing is counted")
        raise InvalidInput(KEY, problem)
    check_key(draft.limit_key.strip())


def _check_without_java(draft: EnteredLimits) -> None:
    """Raise InvalidInput for limits beside a Java admin, whose runs no limit counts."""
    errors = InputErrors()
    fields = (
        ("maxRunning", draft.max_running),
        (LIMITS, uses_of(draft.limits)),
        (KEY, draft.limit_key.strip()),
    )
    for name, value in fields:
        with errors:
            if value:
                raise InvalidInput(name, WITHOUT_JAVA)
    errors.raise_all()
