"""Fake executors, and clients to call them."""

from collections.abc import Iterator

import pytest

from app.executors.calls import Peer
from tests.support.executors import TOKEN
from tests.support.fake_executor import FakeExecutor


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        yield running


@pytest.fixture
def peer(executor: FakeExecutor) -> Peer:
    return Peer(executor.address, "demo-executor", TOKEN)
