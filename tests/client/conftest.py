"""A console's API in this process: clients of it without HTTP, and its address over HTTP."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.domain.access.permissions import Right
from app.settings.config import Config
from executor_client import Client
from tests.pipeline.steps import LOOPBACK
from tests.support.api_v1 import app_of, make_token
from tests.support.client import Console
from tests.support.serving import serving


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, executor_networks=LOOPBACK)


@pytest.fixture
def console(config: Config, database: str) -> Console:
    """The API as an administrator's service token calls it."""
    return Console(app_of(config), make_token(*Right, admin=True))


@pytest.fixture
def client(console: Console) -> Iterator[Client]:
    with Client(transport=console.transport) as client:
        yield client


@pytest.fixture
def address(console: Console) -> Iterator[str]:
    """The address of the console over HTTP."""
    with serving(console.below_its_path) as port:
        yield f"http://127.0.0.1:{port}"
