"""Attacks on outbound calls: executors, webhooks and addresses that lead elsewhere or never end."""

import json

import pytest
from werkzeug.test import Client

from app.config import Config
from app.home import access_tokens
from app.models.registry import Registration
from tests.console.conftest import CONTEXT, Console, admin, app, console, settings
from tests.factories import all_rows

#: fixtures
__all__ = ["admin", "app", "console", "settings"]


@pytest.mark.parametrize("end", ["?", "#", "?x=1", "#x", "%3f", "%3F", "%23", "?#", "/?"])
def test_an_executor_address_cannot_choose_the_whole_path(
    console: Console, settings: Config, end: str
) -> None:
    """``join`` would append ``/run`` behind the ``?``, and the token would be sent to ``/internal/admin``."""
    token = access_tokens(settings)[0]
    body = {
        "registryGroup": "EXECUTOR",
        "registryKey": "sample-app",
        "registryValue": f"http://127.0.0.1:9999/internal/admin{end}",
    }
    answer = Client(console.app).post(
        f"{CONTEXT}/api/registry", data=json.dumps(body), headers={"XXL-JOB-ACCESS-TOKEN": token}
    )
    assert answer.get_json()["code"] == 500
    assert "query" in answer.get_json()["msg"]
    assert all_rows(Registration) == []
