"""Answer cache: what costs a page of many readers much is found once in a few seconds by each process."""

from collections.abc import Callable
from typing import Generic, TypeVar

from app.clock import SECOND_MS, Millis, monotonic_ms
from app.store.pickers.overview import GroupIds

T = TypeVar("T")

#: how old a page that is refreshed every few seconds may be at once: its many readers share an answer
LATELY_MS: Millis = 2 * SECOND_MS
#: answers kept of one question; each depends on the groups that a reader may view
KEPT_MAX = 16


class AnswerCache(Generic[T]):
    """Answers to one question by groups (None: all), each kept for ``keep_ms``; two threads may find one."""

    #: off in tests, whose pages show at once what they have changed
    is_on = True

    def __init__(self, keep_ms: Millis) -> None:
        self._keep_ms = keep_ms
        self._answers: dict[frozenset[int] | None, tuple[Millis, T]] = {}

    def get(self, group_ids: GroupIds, find: Callable[[], T]) -> T:
        """Return the answer for these groups, found now or up to ``keep_ms`` ago."""
        groups = None if group_ids is None else frozenset(group_ids)
        entry = self._answers.get(groups)
        if entry is not None and self.is_on and monotonic_ms() < entry[0]:
            return entry[1]
        answer = find()
        if len(self._answers) >= KEPT_MAX:
            self._answers = {}
        self._answers[groups] = monotonic_ms() + self._keep_ms, answer
        return answer
