"""Child process: what it logs when its part fails."""

import os
import sqlite3
import threading

import pytest
from sqlalchemy.exc import OperationalError

from app.database import faults
from app.settings.config import Config
from workers.liveness import Pulse
from workers.processes import child

AWAY = OperationalError("", {}, sqlite3.OperationalError("away"))


@pytest.mark.parametrize(
    ("error", "line"),
    [(AWAY, "child failed name=monitor database_error=away"), (ValueError("wrong"), "Traceback")],
    ids=["away", "wrong"],
)
def test_a_database_that_is_away_is_one_line(
    error: Exception, line: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    codes = list[int]()
    monkeypatch.setitem(child.PARTS, "monitor", fail)
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(child, "fault_log", faults.FaultLog())
    child._run_part("monitor", Config(), threading.Event(), Pulse())
    assert (codes, line in caplog.text) == ([1], True)
    assert ("Traceback" in caplog.text) is (line == "Traceback")
