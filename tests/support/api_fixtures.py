"""Fixtures of the executor API, plain WSGI called through Werkzeug's test client: a plugin of pytest."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.api.executor_api import ExecutorApi
from app.settings.config import Config
from tests.support.api import NETWORKS, OLD_TOKEN, TOKEN, Executor, console_stub


@pytest.fixture
def api_config(config: Config) -> Config:
    return replace(config, access_tokens=(TOKEN, OLD_TOKEN), executor_networks=NETWORKS)


@pytest.fixture
def executor(database: str, api_config: Config) -> Iterator[Executor]:
    """Executor client with the API that it calls."""
    api = ExecutorApi(console_stub, api_config)
    yield Executor(api)
    api.callbacks.close()
