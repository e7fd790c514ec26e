"""Fixtures of API v1: its application alone, and callers with API tokens."""

from collections.abc import Callable

import pytest

from app.settings.config import Config
from tests.support.api_v1 import ALL, Api, app_of, make_token


@pytest.fixture
def api(config: Config, database: str) -> Api:
    """The API as an administrator's service token calls it."""
    return Api(app_of(config), make_token(*ALL, admin=True, name="admin"))


@pytest.fixture
def api_of(config: Config, database: str) -> Callable[..., Api]:
    """Returns the API as a service token with these rights calls it."""
    app = app_of(config)
    return lambda *rights, **more: Api(app, make_token(*rights, **more))
