"""Command lines of the servers' programs: they reach the server that the driver reaches."""

from pathlib import Path

from sqlalchemy import make_url

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
