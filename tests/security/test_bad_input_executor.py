"""Bad input on the endpoints of our executor client: XXL-JOB's envelope, and nothing half-accepted."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from executor_client import Executor, ExecutorConfig, HandlerRegistry
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.security.hostile import json_bodies, try_out
from tests.support.executor_client import FAST, T0, run_fields
from tests.support.security import EXAMPLES

FIELDS: dict[str, dict[str, Any]] = {
    "run": run_fields(7),
    "trigger": run_fields(8),
    "kill": {"jobId": 1},
    "idleBeat": {"jobId": 1},
    "log": {"logId": 7, "logDateTim": T0, "logDateTime": T0, "fromLineNum": 1},
    "beat": {"x": 1},
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FlaskClient]:
    """Client of a running executor without a port of its own."""
    admin, handlers, app = StandInAdmin(), HandlerRegistry(), Flask(__name__)
    handlers.job("ok")(lambda: None)
    settings = {"access_tokens": (TOKEN,), "home": tmp_path, "route_logging": False, "timing": FAST}
    executor = Executor(ExecutorConfig((admin.url,), appname="test", port=5000, **settings), handlers)
    app.register_blueprint(executor.blueprint())
    executor.start()
    yield app.test_client()
    executor.stop()
    admin.down()


@EXAMPLES
def test_json_of_consoles(client: FlaskClient, caplog: pytest.LogCaptureFixture, examples: int) -> None:
    caplog.set_level(logging.ERROR, "executor_client")

    def send(action: str, body: bytes) -> None:
        answer = client.post(f"/{action}", data=body, headers={"XXL-JOB-ACCESS-TOKEN": TOKEN})
        reply = answer.get_json()
        assert (answer.status_code, reply["code"] in (200, 500)) == (200, True)
        assert "Traceback" not in answer.text
        assert [record.message for record in caplog.records] == []

    for action, fields in FIELDS.items():
        try_out(json_bodies(fields), lambda body, action=action: send(action, body), 2 * examples)
