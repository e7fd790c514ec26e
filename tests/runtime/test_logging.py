"""Log lines: text and JSON, fields, and the id of the request."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from app.runtime.logging import ACCESS, JSON, QUIET, SILENT, TEXT, QuotedText, request_id, set_up_logging

logger = logging.getLogger("app.test")
FORGED = "x\r\n2026-01-01 ERROR forged"


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Restore the logging of the test run."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    token = request_id.set("")
    yield
    request_id.reset(token)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in (*QUIET, *SILENT, ACCESS):
        logging.getLogger(name).setLevel(logging.NOTSET)


def objects(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_break_in_a_message_forges_no_record(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("INFO")
    logger.info("registered app=%s", FORGED)
    logger.debug("not logged")
    logging.getLogger(QUIET[0]).info("not logged either")
    logging.getLogger("urllib3.connectionpool").warning("Retrying after connection broken: /channel/secret")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert 'registered app="x\\r\\n2026-01-01 ERROR forged"' in lines[0]


def test_a_field_with_blanks_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("INFO")
    error = ValueError('no answer, or "none"')
    logger.warning("send failed %s log_id=%s reason=%s to=%s empty=%s", "at once", 7, error, "::1", "")
    line = capsys.readouterr().err.rstrip()
    assert line.endswith(r'send failed at once log_id=7 reason="no answer, or \"none\"" to=::1 empty=""')


def test_a_json_line_has_the_fields_of_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("INFO", JSON)
    logger.warning("login refused %d%% of=%s user=%s ms=%.1f", 5, FORGED, QuotedText('a"b'), 2.5)
    (line,) = objects(capsys)
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "WARNING",
        "logger": "app.test",
        "process": "MainProcess",
        "thread": "MainThread",
        "message": f'login refused 5% of={FORGED} user="a\\"b" ms=2.5',
        "of": FORGED,
        "user": 'a"b',
        "ms": 2.5,
    }


def test_a_field_never_replaces_a_member_of_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("INFO", JSON)
    logger.error("level=%s paths=%s", "forged", ("a", 1))
    (line,) = objects(capsys)
    assert (line["level"], line["paths"]) == ("ERROR", "('a', 1)")


def test_an_exception_is_inside_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("INFO", JSON)
    try:
        raise ValueError("wrong")
    except ValueError:
        logger.exception("send failed log_id=%s", 7)
    (line,) = objects(capsys)
    assert line["log_id"] == 7
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: wrong")


@pytest.mark.parametrize("form", [TEXT, JSON])
def test_lines_carry_the_id_of_the_request(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("INFO", form)
    request_id.set("req-12345678")
    try:
        raise ValueError
    except ValueError:
        logger.exception("failed")
    first, *rest = capsys.readouterr().err.splitlines()
    if form == JSON:
        assert (json.loads(first)["request"], rest) == ("req-12345678", [])
    else:
        assert first.endswith("failed request=req-12345678")
        assert rest[-1] == "ValueError"


def test_the_access_log_is_independent_of_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("ERROR")
    logging.getLogger(ACCESS).info("request path=%s", "/")
    logger.warning("not logged")
    assert capsys.readouterr().err.count("\n") == 1
