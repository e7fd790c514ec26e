"""The cache of group tokens while the database is slow or away."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.api.tokens import CACHE_MS, RETRY_MS, TokenBook
from app.store.executors import groups
from tests.support.factories import make_group

OWN, GLOBAL, APP = "the-token-of-billing", "the-token-of-all-others", "billing-exec"
WAIT_S = 20


class SlowTokens:
    """Stands before the statement that reads the tokens: holds it back, lets it fail, and moves the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 0
        self.count = 0
        self.is_away = False
        self.error: Exception = OperationalError("SELECT", None, ConnectionError("away"))
        self.started, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self._find = groups.find_with_token
        monkeypatch.setattr(groups, "find_with_token", self._read)
        monkeypatch.setattr("app.api.tokens.monotonic_ms", lambda: self.now_ms)

    def _read(self, *arguments: Any) -> Any:
        self.count += 1
        self.started.set()
        assert self.go_on.wait(WAIT_S)
        if self.is_away:
            raise self.error
        return self._find(*arguments)

    def hold(self) -> None:
        """Hold back the readings from now on."""
        self.started.clear()
        self.go_on.clear()


@pytest.fixture
def tokens(database: str, monkeypatch: pytest.MonkeyPatch) -> SlowTokens:
    make_group(app_name=APP, access_token=OWN)
    return SlowTokens(monkeypatch)


@pytest.fixture
def submit() -> Iterator[Callable[..., "Future[bool]"]]:
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


def test_one_thread_reads_while_the_others_use_the_former_tokens(
    tokens: SlowTokens, submit: Callable[..., "Future[bool]"]
) -> None:
    book = TokenBook((GLOBAL,))
    assert book.accepts(OWN, APP)
    tokens.now_ms += CACHE_MS + 1
    tokens.hold()
    reader = submit(book.accepts, OWN, APP)
    assert tokens.started.wait(WAIT_S)
    assert [submit(book.accepts, OWN, APP).result(WAIT_S) for _ in range(4)] == [True] * 4
    assert not submit(book.accepts, GLOBAL, APP).result(WAIT_S)
    tokens.go_on.set()
    assert reader.result(WAIT_S)
    assert tokens.count == 2


def test_tokens_that_cannot_be_read_stay_valid_and_are_read_again_after_a_pause(
    tokens: SlowTokens, caplog: pytest.LogCaptureFixture
) -> None:
    book = TokenBook((GLOBAL,))
    assert book.accepts(OWN, APP)
    tokens.now_ms += CACHE_MS + 1
    tokens.is_away = True
    assert [book.accepts(OWN, APP) for _ in range(3)] == [True] * 3
    assert tokens.count == 2
    assert "group tokens not read database_error=away" in caplog.text
    tokens.is_away = False
    make_group(app_name="another-exec", access_token="the-token-of-another")
    tokens.now_ms += RETRY_MS
    assert not book.accepts("the-token-of-another", "another-exec")
    tokens.now_ms += 1
    assert book.accepts("the-token-of-another", "another-exec")
    assert tokens.count == 3


def test_before_the_first_reading_all_threads_share_one_error(
    tokens: SlowTokens, submit: Callable[..., "Future[bool]"]
) -> None:
    book = TokenBook((GLOBAL,))
    tokens.is_away = True
    tokens.hold()
    calls = [submit(book.accepts, OWN, APP) for _ in range(8)]
    assert tokens.started.wait(WAIT_S)
    tokens.go_on.set()
    assert all(isinstance(call.exception(WAIT_S), OperationalError) for call in calls)
    assert tokens.count == 1
    tokens.is_away = False
    tokens.now_ms += RETRY_MS + 1
    assert book.accepts(OWN, APP)


def test_an_error_that_is_raised_again_does_not_grow(tokens: SlowTokens) -> None:
    book, frames = TokenBook((GLOBAL,)), []
    tokens.is_away = True
    for _ in range(3):
        with pytest.raises(OperationalError) as failed:
            book.accepts(OWN, APP)
        frames.append(len(failed.traceback))
    assert tokens.count == 1
    assert frames[0] == frames[2]


def test_any_error_leaves_the_former_tokens_valid_and_is_logged_once(
    tokens: SlowTokens, caplog: pytest.LogCaptureFixture
) -> None:
    book = TokenBook((GLOBAL,))
    assert book.accepts(OWN, APP)
    tokens.is_away, tokens.error = True, ValueError("a row of another kind")
    tokens.now_ms += CACHE_MS + 1
    for count in (2, 3):
        assert [book.accepts(OWN, APP) for _ in range(3)] == [True] * 3
        assert tokens.count == count
        tokens.now_ms += RETRY_MS + 1
    assert caplog.messages == ['group tokens not read reason="a row of another kind"']
