"""Job lookup: what the rules of a job ask about other jobs, groups, variables and channels."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.jobs.job_field import INT_MAX
from app.domain.limits.rules import KnownLimit
from app.domain.rounds.cycles import find_path
from app.services.calendars.lookup import StoredCalendars
from app.services.jobs.placeholders import check_own
from app.services.rounds.rules import LinkLookup
from app.store.alarms.channels import has_channel
from app.store.executors import listing as group_lists
from app.store.jobs import listing as job_lists
from app.store.jobs.scheduling import find_names
from app.store.limits.listing import find_known
from app.store.rounds.edges import Followers, JobLinks
from app.store.rounds.predecessor_runs import find_keys


class JobLookup(LinkLookup, Protocol):
    """Job lookup: access of the rules to other jobs and groups."""

    #: calendars that jobs may name
    calendars: StoredCalendars

    def has_group(self, group_id: int) -> bool:
        """Return whether the group exists."""

    def check_parameter(self, text: str, group_id: int, predecessors: Collection[str]) -> None:
        """Raise InvalidInput if no run of the group could have the parameter, with its placeholders.

        ``predecessors``: keys and ids of the jobs that the job runs after.
        """

    def keys_of(self, job_ids: Collection[int]) -> Mapping[int, str]:
        """Return job id -> key as code, without its group; of those that have one."""

    def has_channel(self, name: str, /) -> bool:
        """Return whether the actor may see an alarm channel of this name."""

    def find_limits(self, names: Collection[str], /) -> Mapping[str, KnownLimit]:
        """Return those of the named limits that exist and that the actor may see."""


class StoredJobLookup:
    """Job lookup in the database, for an actor. It locks the groups it looks up against deletion."""

    def __init__(self, session: Session, actor: Actor) -> None:
        self._session, self._actor = session, actor
        self._followers: Followers | None = None
        self.calendars = StoredCalendars(session)

    def has_group(self, group_id: int) -> bool:
        """Return whether the group exists, and lock it against deletion."""
        return group_lists.hold_group(self._session, group_id) is not None

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id; ids out of the column's range count as missing."""
        valid_ids = [job_id for job_id in job_ids if 0 < job_id <= INT_MAX]
        return job_lists.find_groups_of(self._session, valid_ids)

    def find_path(self, start: int, goal: int, links: JobLinks) -> Sequence[int]:
        """Return a path of jobs that follow each other from one to another; ``links``: of the draft."""
        self._followers = self._followers or Followers(self._session, links)
        return find_path(start, goal, self._followers)

    def names_of(self, job_ids: Collection[int]) -> Mapping[int, str]:
        """Return the names of those of the jobs that the actor may see, with their ids: ``7 Load``."""
        names = find_names(self._session, job_ids).values()
        return {
            name.id: f"{name.id} {name.job_desc}"
            for name in names
            if self._actor.may(name.job_group, Right.VIEW)
        }

    def check_parameter(self, text: str, group_id: int, predecessors: Collection[str]) -> None:
        """Raise InvalidInput if no run of the group could have the parameter, with its placeholders."""
        check_own(self._session, text, group_id, predecessors)

    def keys_of(self, job_ids: Collection[int]) -> Mapping[int, str]:
        """Return job id -> key as code, without its group; of those that have one."""
        return find_keys(self._session, job_ids)

    def has_channel(self, name: str) -> bool:
        """Return whether the actor may see an alarm channel of this name."""
        return has_channel(self._session, name, self._actor.group_ids(Right.VIEW))

    def find_limits(self, names: Collection[str]) -> Mapping[str, KnownLimit]:
        """Return those of the named limits that exist and that the actor may see."""
        return find_known(self._session, names, self._actor.group_ids(Right.VIEW))
