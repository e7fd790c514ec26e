"""Job lookup: what the rules of a job ask about other jobs, groups, variables and channels."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.jobs.children import leads_to
from app.domain.jobs.job_field import INT_MAX
from app.domain.limits.rules import KnownLimit
from app.services.jobs.placeholders import check_own
from app.store.alarms.channels import has_channel
from app.store.executors import listing as group_lists
from app.store.jobs import listing as job_lists
from app.store.limits.listing import find_known


class JobLookup(Protocol):
    """Job lookup: access of the rules to other jobs and groups."""

    def has_group(self, group_id: int) -> bool:
        """Return whether the group exists."""

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id; missing jobs are left out."""

    def leads_to(self, child_id: int, job_id: int) -> bool:
        """Return whether ``job_id`` is ``child_id`` or one of its descendants."""

    def check_parameter(self, text: str, group_id: int) -> None:
        """Raise InvalidInput if no run of the group could have the parameter, with its placeholders."""

    def has_channel(self, name: str, /) -> bool:
        """Return whether the actor may see an alarm channel of this name."""

    def find_limits(self, names: Collection[str], /) -> Mapping[str, KnownLimit]:
        """Return those of the named limits that exist and that the actor may see."""


class StoredJobLookup:
    """Job lookup in the database, for an actor. It locks the groups it looks up against deletion."""

    def __init__(self, session: Session, actor: Actor) -> None:
        self._session, self._actor = session, actor
        self._children: dict[int, Sequence[int]] = {}

    def has_group(self, group_id: int) -> bool:
        """Return whether the group exists, and lock it against deletion."""
        return group_lists.hold_group(self._session, group_id) is not None

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id; ids out of the column's range count as missing."""
        valid_ids = [job_id for job_id in job_ids if 0 < job_id <= INT_MAX]
        return job_lists.find_groups_of(self._session, valid_ids)

    def leads_to(self, child_id: int, job_id: int) -> bool:
        """Return whether ``job_id`` is ``child_id`` or one of its descendants."""
        return leads_to(child_id, job_id, self._children_of)

    def check_parameter(self, text: str, group_id: int) -> None:
        """Raise InvalidInput if no run of the group could have the parameter, with its placeholders."""
        check_own(self._session, text, group_id)

    def has_channel(self, name: str) -> bool:
        """Return whether the actor may see an alarm channel of this name."""
        return has_channel(self._session, name, self._actor.group_ids(Right.VIEW))

    def find_limits(self, names: Collection[str]) -> Mapping[str, KnownLimit]:
        """Return those of the named limits that exist and that the actor may see."""
        return find_known(self._session, names, self._actor.group_ids(Right.VIEW))

    def _children_of(self, job_ids: Collection[int]) -> Mapping[int, Sequence[int]]:
        """Return the children of the jobs; all descendants are read at once, as callers follow chains."""
        if not self._children.keys() >= set(job_ids):
            links = job_lists.find_descendants(self._session, job_ids)
            self._children |= {child: () for _group_id, ids in links.values() for child in ids}
            self._children |= {job_id: ids for job_id, (_group_id, ids) in links.items()}
        return {job_id: self._children[job_id] for job_id in job_ids if job_id in self._children}
