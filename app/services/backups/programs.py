"""Dump and client programs of the servers: their command lines, without any secret, and their failures.

MariaDB and MySQL read user and password from a private option file, PostgreSQL from the environment, which
only the same user can see.
"""

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from pathlib import Path

from sqlalchemy.engine import URL

from app.database.dialects.choice import dialect_of_url
from app.errors import NotConfigured

#: program -> (its names, newest first; its Debian package)
MARIADB_DUMP = (("mariadb-dump", "mysqldump"), "mariadb-client")
MYSQL_CLIENT = (("mariadb", "mysql"), "mariadb-client")
POSTGRESQL_DUMP = (("pg_dump",), "postgresql-client")
POSTGRESQL_CLIENT = (("psql",), "postgresql-client")
#: a row with a GLUE source of 16 MiB, escaped
PACKET = "512M"
#: option of the driver's URL -> of the option file
MYSQL_OPTIONS = {
    "unix_socket": "socket",
    "ssl_ca": "ssl-ca",
    "ssl_cert": "ssl-cert",
    "ssl_key": "ssl-key",
}
#: argument of the driver -> variable of libpq
POSTGRESQL_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "options": "PGOPTIONS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "service": "PGSERVICE",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "hostaddr": "PGHOSTADDR",
    "passfile": "PGPASSFILE",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "require_auth": "PGREQUIREAUTH",
    "requirepeer": "PGREQUIREPEER",
    "krbsrvname": "PGKRBSRVNAME",
    "load_balance_hosts": "PGLOADBALANCEHOSTS",
}
#: of PostgreSQL 17 and later: a load may take longer than the transactions of this role
NO_TIMEOUT = (
    "SELECT set_config('transaction_timeout', '0', false)"
    " WHERE current_setting('transaction_timeout', true) IS NOT NULL"
)
#: words in the line of an error, which PostgreSQL may precede with warnings
ERROR = re.compile(r"\b(ERROR|FATAL|error)\b")
#: options of the clients of MariaDB and MySQL, where they have them, by which they run no command of a dump
SAFE_OPTIONS = {
    "sandbox": "--sandbox",
    "commands": "--commands=OFF",
    "system-command": "--system-command=OFF",
}
#: characters of a program's error that are shown
ERROR_MAX = 300


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and what is added to the environment."""

    arguments: Sequence[str]
    environ: Mapping[str, str]


def find_program(names_and_package: tuple[Sequence[str], str]) -> str:
    """Return the path of a program; raises NotConfigured with the package to install."""
    names, package = names_and_package
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    raise NotConfigured(f"{names[0]} is not installed (Debian: apt install {package})")


def dump_command(
    url: URL, tables: Sequence[str], namespace: str, folder: Path, *, is_mysql: bool = False
) -> Command:
    """Return the command that writes a consistent dump of some tables to standard output.

    ``is_mysql``: the server is MySQL, not MariaDB; then MariaDB's program raises NotConfigured.
    """
    if dialect_of_url(url).dumps_for_psql:
        program = find_program(POSTGRESQL_DUMP)
        options = [f'--table="{namespace}"."{name}"' for name in tables]
        plain = ["--format=plain", "--no-owner", "--no-privileges", "--no-password"]
        return Command([program, *plain, *options], _postgresql_environ(url))
    program = _find_mysqldump() if is_mysql else find_program(MARIADB_DUMP)
    consistent = ["--single-transaction", "--quick", "--skip-lock-tables", "--skip-add-locks"]
    plain = ["--skip-triggers", "--hex-blob", "--no-tablespaces", "--default-character-set=utf8mb4"]
    if is_mysql or not _is_of_mariadb(program):
        plain += ["--set-gtid-purged=OFF", "--column-statistics=0"]
    files = [f"--defaults-file={_option_file(url, folder)}", f"--max-allowed-packet={PACKET}"]
    return Command([program, *files, *consistent, *plain, url.database or "", *tables], {})


def load_command(url: URL, folder: Path, before: Sequence[str] = ()) -> Command:
    """Return the command that executes a dump from standard input; PostgreSQL wholly or not at all.

    The client executes no commands of its own that stand in the dump, if it has options for that.
    ``before``: statements of PostgreSQL that are executed before the dump, in the same transaction.
    """
    if dialect_of_url(url).dumps_for_psql:
        program = find_program(POSTGRESQL_CLIENT)
        strict = ["--no-psqlrc", "--quiet", "--no-password", "--single-transaction"]
        commands = (NO_TIMEOUT, *before, *_restriction(program))
        command_options = [f"--command={command}" for command in commands]
        arguments = [*strict, "--set=ON_ERROR_STOP=1", *command_options, "--file=-"]
        return Command([program, *arguments], _postgresql_environ(url))
    program = find_program(MYSQL_CLIENT)
    files = [f"--defaults-file={_option_file(url, folder)}", f"--max-allowed-packet={PACKET}"]
    plain = ["--default-character-set=utf8mb4", "--batch", "--binary-mode", "--local-infile=0"]
    return Command([program, *files, *plain, *_safe_options(program), url.database or ""], {})


def run(command: Command, *, source: Path | None = None, target: Path | None = None) -> None:
    """Run a program with a file as its input or output; raises NotConfigured with its error in one line."""
    with (
        (source or Path(os.devnull)).open("rb") as reading,
        (target or Path(os.devnull)).open("wb") as writing,
    ):
        process = subprocess.run(
            command.arguments,
            env={**os.environ, "LC_ALL": "C", **command.environ},
            stdin=reading,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    if process.returncode != 0:
        name = Path(command.arguments[0]).name
        reason = _reason(process.stderr.decode(errors="replace")) or f"exit code {process.returncode}"
        raise NotConfigured(f"{name}: {reason.removeprefix(f'{name}: ').removeprefix('error: ')}")


def _reason(output: str) -> str:
    """Return the first error of a program in one line, with what PostgreSQL says in detail."""
    lines = [line.strip() for line in output.split("\n") if line.strip() and "Warning" not in line]
    # warnings of PostgreSQL have a detail too
    lines = list(dropwhile(lambda line: not ERROR.search(line), lines)) or lines
    from_detail = dropwhile(lambda line: not line.startswith("DETAIL:"), lines[1:])
    detail = takewhile(lambda line: not line.startswith(("HINT:", "CONTEXT:")), from_detail)
    return " ".join([*lines[:1], *detail])[:ERROR_MAX]


def _restriction(psql: str) -> list[str]:
    """Return the command after which psql runs none of a file: it ends only by a key that no file has."""
    is_known = rb"\restrict" in _output(psql, "--help=commands")
    return [rf"\restrict {secrets.token_hex(16)}"] if is_known else []


def _safe_options(client: str) -> list[str]:
    names = set(re.findall(rb"^ +--([\w-]+)", _output(client, "--no-defaults", "--help"), re.MULTILINE))
    return [option for name, option in SAFE_OPTIONS.items() if name.encode() in names]


def _output(program: str, *arguments: str) -> bytes:
    return subprocess.run([program, *arguments], capture_output=True, check=False).stdout


def _find_mysqldump() -> str:
    """Return the path of MySQL's own program: MariaDB's dumps have the values of generated columns, too."""
    program = shutil.which("mysqldump")
    if program is not None and not _is_of_mariadb(program):
        return program
    problem = "is not installed" if program is None else "is MariaDB's, whose dumps MySQL does not load"
    raise NotConfigured(f"mysqldump {problem}; install mysql-client from MySQL's package repository")


def _is_of_mariadb(program: str) -> bool:
    return b"MariaDB" in _output(program, "--version")


def _option_file(url: URL, folder: Path) -> Path:
    """Write the option file of the MariaDB and MySQL programs: all that the driver's URL says."""
    query = {name: str(value) for name, value in url.query.items()}
    options = {"user": url.username, "password": url.password, "host": url.host, "port": url.port}
    options |= {MYSQL_OPTIONS[name]: value for name, value in query.items() if name in MYSQL_OPTIONS}
    if "socket" in options:
        options |= {"protocol": "socket", "host": None}
    else:  # The programs take localhost for their default socket, whatever the port is.
        options["protocol"] = "tcp"
    values = {name: str(value) for name, value in options.items() if value is not None}
    texts = {name: re.sub(r'(["\\])', r"\\\1", value) for name, value in values.items()}
    lines = ["[client]", *(f'{name}="{value}"' for name, value in texts.items())]
    if query.get("ssl_disabled", "").lower() in ("true", "1"):
        lines.append("loose-skip-ssl")
    path = folder / "client.cnf"
    path.touch(mode=0o600, exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def _postgresql_environ(url: URL) -> dict[str, str]:
    """Return what libpq reads from its environment: the arguments of the driver, also for several hosts."""
    arguments = {name: str(value) for name, value in url.get_dialect()().create_connect_args(url)[1].items()}
    arguments.setdefault("connect_timeout", "5")
    variables = {variable: arguments.get(name, "") for name, variable in POSTGRESQL_VARIABLES.items()}
    variables |= {f"PG{name.upper()}": value for name, value in arguments.items() if name.startswith("ssl")}
    variables["PGCLIENTENCODING"] = "UTF8"
    return {name: value for name, value in variables.items() if value}
