"""Token scope: the executor groups that an access token acts for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenScope:
    """Groups whose runs a token may report, by id.

    A group with a token of its own takes that one only, all others the global token, those deleted included.
    """

    is_global: bool
    #: groups that have this token
    own: frozenset[int] = frozenset()
    #: all groups with a token of their own
    protected_ids: frozenset[int] = frozenset()

    @property
    def covers_all(self) -> bool:
        """Whether no run has to be looked up: the global token, and no group has another."""
        return self.is_global and not self.protected_ids

    def covers(self, group_id: int) -> bool:
        """Whether the token acts for a group."""
        return group_id in self.own if group_id in self.protected_ids else self.is_global
