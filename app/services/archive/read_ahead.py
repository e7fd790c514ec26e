"""Reads objects of a store before their turn: an answer of a bucket takes a while, many at once no longer."""

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from app.blobs.blob_store import BlobStore


class ReadAhead:
    """Reader of one thread; ``expect`` says what it will ask for, in order; it may end earlier."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._pool = ThreadPoolExecutor(store.reads_at_once) if store.reads_at_once > 1 else None
        self._expected = deque[str]()
        self._asked = deque[tuple[str, Future[bytes]]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Begin no further read and wait for none."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def expect(self, names: Iterable[str]) -> None:
        """Read these objects ahead, behind those that are expected already."""
        if self._pool is not None:
            self._expected.extend(names)

    def get(self, name: str) -> bytes:
        """Return an object, as the store does; those that were expected before it are not."""
        if self._pool is None:
            return self._store.get(name)
        while True:
            while self._expected and len(self._asked) < self._store.reads_at_once:
                following = self._expected.popleft()
                self._asked.append((following, self._pool.submit(self._store.get, following)))
            if not self._asked:
                return self._store.get(name)
            next_name, content = self._asked.popleft()
            if next_name == name:
                return content.result()
