"""Dumps: rows counted in them, failures of their programs in one line."""

from pathlib import Path

import pytest

from app.errors import NotConfigured
from app.services.backups.dumps import allow_older_servers, count_dumped
from app.services.backups.programs import Command, run

#: both forms of MariaDB and MySQL: each row on a line of its own, or all on one
MYSQL = rb"""
CREATE TABLE `a` (`id` int, `x` text DEFAULT '),(');
INSERT INTO `a` VALUES
(1,'INSERT INTO `b` VALUES (1);\n'),
(2,'it''s \'(quoted)\' \\'),(3,NULL);
INSERT INTO `a` (`id`, `x`) VALUES (4,'x'),(5,'),(');
INSERT INTO `b` VALUES (-1,_binary '(',0x28);
"""
POSTGRESQL = rb"""
CREATE TABLE public.a (id integer);
COPY public.a (id, x) FROM stdin;
1	COPY public.b (id) FROM stdin;
2	\\.
\.


COPY public."b" (id) FROM stdin;
\.
"""
#: the head of pg_dump 17 and later, and a text that equals a line of it
TIMEOUT = b"SET transaction_timeout = 0;\n"
HEAD = b"--\n-- PostgreSQL database dump\n--\n\nSET statement_timeout = 0;\n%bSET row_security = off;\n\n"
DATA = b"CREATE TABLE public.a (x text);\n\nCOPY public.a (x) FROM stdin;\n%b\\.\n" % TIMEOUT


def test_a_setting_that_older_servers_reject_is_left_out_of_a_dump(tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    dump.write_bytes(HEAD % TIMEOUT + DATA)
    for _ in range(2):
        allow_older_servers(dump)
        assert dump.read_bytes() == HEAD % b"--T transaction_timeout = 0;\n" + DATA
    dump.write_bytes(HEAD % b"" + DATA)
    allow_older_servers(dump)
    assert dump.read_bytes() == HEAD % b"" + DATA


def test_rows_of_a_dump_are_counted(tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    dump.write_bytes(MYSQL)
    assert count_dumped(dump, for_psql=False) == {"a": 5, "b": 1}
    dump.write_bytes(POSTGRESQL)
    assert count_dumped(dump, for_psql=True) == {"a": 2}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "pg_dump: error: server version: 16; pg_dump version: 15\npg_dump: error: aborting",
            "pg_dump: server version: 16; pg_dump version: 15",
        ),
        (
            "ERROR:  cannot drop\nDETAIL:  view v depends on a\nview w depends on a\nHINT:  Use CASCADE",
            "pg_dump: ERROR:  cannot drop DETAIL:  view v depends on a view w depends on a",
        ),
        (
            "WARNING:  collation\nDETAIL:  created by 1\nERROR:  cannot drop\nDETAIL:  view v depends on a",
            "pg_dump: ERROR:  cannot drop DETAIL:  view v depends on a",
        ),
        ("", "pg_dump: exit code 1"),
    ],
)
def test_a_program_that_fails_is_named_with_its_reason(tmp_path: Path, said: str, reason: str) -> None:
    script = tmp_path / "pg_dump"
    script.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    script.chmod(0o700)
    with pytest.raises(NotConfigured) as caught:
        run(Command([str(script)], {}), target=tmp_path / "out")
    assert str(caught.value) == reason
