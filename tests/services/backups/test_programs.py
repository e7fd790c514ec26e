"""Command lines of the servers' programs: they reach the server that the driver reaches."""

from pathlib import Path

import pytest
from sqlalchemy import make_url

from app.errors import NotConfigured
from app.services.backups.dumps import require_same_product
from app.services.backups.programs import dump_command


def options_for(url: str, folder: Path) -> set[str]:
    """Return the lines of the option file of MariaDB and MySQL."""
    dump_command(make_url(url), ["t"], "", folder)
    return set((folder / "client.cnf").read_text().splitlines())


def test_localhost_is_reached_by_tcp_as_by_the_driver(tmp_path: Path) -> None:
    options = options_for("mysql+pymysql://u@localhost:3307/d", tmp_path)
    assert {'host="localhost"', 'port="3307"', 'protocol="tcp"'} <= options


def test_a_socket_is_used_whatever_the_host(tmp_path: Path) -> None:
    options = options_for("mysql+pymysql://u@127.0.0.1/d?unix_socket=/run/own.sock", tmp_path)
    assert {'socket="/run/own.sock"', 'protocol="socket"'} <= options
    assert 'host="127.0.0.1"' not in options


def test_several_hosts_of_postgresql_are_passed_on(tmp_path: Path) -> None:
    hosts = "host=a:5432&host=b:5433&target_session_attrs=read-write"
    environ = dump_command(make_url(f"postgresql+psycopg://u@/d?{hosts}"), ["t"], "public", tmp_path).environ
    assert (environ["PGHOST"], environ["PGPORT"]) == ("a,b", "5432,5433")
    assert (environ["PGTARGETSESSIONATTRS"], environ["PGDATABASE"]) == ("read-write", "d")


def test_mysql_is_not_dumped_by_the_program_of_mariadb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mysqldump"
    program.write_text("#!/bin/sh\necho mysqldump from 11.8.3-MariaDB\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(NotConfigured, match="mysqldump is MariaDB's, whose dumps .*; install"):
        dump_command(make_url("mysql+pymysql://u@h/d"), ["t"], "", tmp_path, is_mysql=True)


@pytest.mark.parametrize(
    ("head", "is_mysql", "named"),
    [
        ("-- MariaDB dump 10.19\n--\n-- Server version\t10.11.14-MariaDB-0+deb12u2\n", True, "of MariaDB"),
        ("-- MySQL dump 10.13\n--\n-- Server version\t9.7.4-2\n", False, "of MySQL"),
    ],
)
def test_a_dump_of_mariadb_is_not_loaded_on_mysql_nor_the_reverse(
    tmp_path: Path, head: str, is_mysql: bool, named: str
) -> None:
    dump = tmp_path / "database.sql"
    dump.write_text(head)
    require_same_product(dump, is_mysql=not is_mysql)
    with pytest.raises(NotConfigured, match=f"the backup is {named}, the database is on M"):
        require_same_product(dump, is_mysql=is_mysql)
