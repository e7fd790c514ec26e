"""Client commands in dumps: what ``mariadb``, ``mysql`` and ``psql`` would execute as the operator.

A dump is read as the clients read it, by a grammar of what the dump programs write: statements that begin in
known ways, texts in quotes, data of COPY. Whatever two clients, or two settings, could read differently is
refused as well: a backslash, a dollar quote or a comment outside of texts, a second statement in a line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.errors import NotConfigured

#: the dump programs of PostgreSQL have these lines near the ends, the others at the beginning
EDGE_BYTES = 8_192
#: characters of a refused line that are shown
SHOWN_MAX = 60

#: after a line end: the edge may begin in the data, where a backslash is two of them
_RESTRICT = re.compile(rb"(?<=\n)\\(?:un)?restrict [A-Za-z0-9]+(?=\n)")
_END_OF_DATA = (b"\\.\n", b"\\.\r\n", b"\\.")
_NO_DATA = re.compile(rb"(?!)")


@dataclass(frozen=True, slots=True)
class _Grammar:
    """Lines of the dumps of one kind of server."""

    #: whole lines between statements: empty ones, comments, settings of the session
    between: re.Pattern[bytes]
    #: beginnings of statements
    start: re.Pattern[bytes]
    #: whole lines that data follow
    data: re.Pattern[bytes]
    #: texts and names in quotes; with an empty first group the text goes on in the next line
    quote: re.Pattern[bytes]
    #: what must not be outside of them
    suspect: re.Pattern[bytes]


#: assignments to variables of the session. One to a variable of the user has no text: PREPARE executes those
_SETTING = (
    rb"(?:@\w+\s*=\s*(?:@@(?:SESSION\.)?\w+|\d+)"
    rb"|(?:@@(?:SESSION\.)?|SESSION )?(?!PASSWORD\b)\w+\s*=\s*(?:@{0,2}(?:SESSION\.)?\w+|'[\w+:,./-]*'))"
)
#: of Percona Server: statements to prepare, which are executed only if the server has RocksDB
_BULK_LOAD = (
    rb"'(?:SELECT 0|SET (?:SESSION |@)\w*rocksdb\w* = @{0,2}\w+"
    rb"|SELECT COUNT\(\*\) INTO @\w+ FROM \w+_schema\.session_variables"
    rb" WHERE VARIABLE_NAME=\\'rocksdb_bulk_load\\')'"
)
_SETTINGS = (
    rb"SET (?:NAMES \w+|" + _SETTING + rb"(?:,\s*" + _SETTING + rb")*"
    rb"|@\w+ = IF \(@\w+, " + _BULK_LOAD + rb", " + _BULK_LOAD + rb"\))"
    rb"|SELECT COUNT\(\*\) INTO @\w+ FROM INFORMATION_SCHEMA\.\w+"
    rb"(?: WHERE \w+ ?= ?'\w+'(?: AND \w+ ?= ?'\w+')*)?"
    rb"|(?:PREPARE \w+ FROM @\w+|EXECUTE \w+|DEALLOCATE PREPARE \w+)"
    rb"|ALTER TABLE `[^`\n]+` (?:DISABLE|ENABLE) KEYS"
)
#: what version comments within CREATE TABLE begin with
_TABLE_OPTIONS = (
    rb"(?:PARTITION BY|TABLESPACE|STORAGE|COLUMN_FORMAT|(?:NOT )?ENFORCED|(?:IN)?VISIBLE|SRID|WITH PARSER"
    rb"|(?:SECONDARY_)?ENGINE_ATTRIBUTE|ENCRYPTION|COMPRESSION|AUTOEXTEND_SIZE)\b"
)
#: backslashes escape; MySQL reads a comment of MariaDB as nothing, so that one has no quotes
_MYSQL = _Grammar(
    between=re.compile(
        rb"\s*|--(?:\s.*)?|/\*M?!999999\\- enable the sandbox mode \*/\s*"
        rb"|(?:" + _SETTINGS + rb");\s*|/\*M?!\d{5,6} (?:" + _SETTINGS + rb") ?\*/;\s*",
        re.DOTALL | re.IGNORECASE,
    ),
    start=re.compile(
        rb"(?:CREATE TABLE (?:IF NOT EXISTS )?|DROP TABLE (?:IF EXISTS )?|(?:INSERT|REPLACE) INTO )"
        rb"`[^`\n]+`(?!\s*\.)|LOCK TABLES `|UNLOCK TABLES;|COMMIT;",
        re.IGNORECASE,
    ),
    data=_NO_DATA,
    quote=re.compile(
        rb"'[^'\\]*(?:\\.[^'\\]*)*('|\Z)|\"[^\"\\]*\"|`[^`\\]*`|/\*M!\d{6} [^'\"`\\*;]*\*/", re.DOTALL
    ),
    suspect=re.compile(
        rb"[\\'\"`#\0]|--|/\*(?!!\d{5,6} " + _TABLE_OPTIONS + rb")|;\s*\S"
        rb"|DELIMITER|\b(?:SELECT|OUTFILE|DUMPFILE|LOAD_FILE|DIRECTORY|CONNECTION)\b",
        re.IGNORECASE,
    ),
)
#: whether backslashes escape is a setting of the session: none may stand before a quote
_POSTGRESQL = _Grammar(
    between=re.compile(rb"\s*|--.*", re.DOTALL),
    start=re.compile(
        rb"SET (?:client_encoding = 'UTF8'|(?!client_encoding)[a-z_]+ = [\w' \"]*);\n"
        rb"|SELECT pg_catalog\.(?:set_config\('search_path'|setval\()"
        rb"|SELECT \* FROM pg_catalog\.pg_restore_\w+_stats\("
        rb"|CREATE (?:(?:UNLOGGED )?TABLE|(?:UNIQUE )?INDEX|SEQUENCE|STATISTICS|POLICY) "
        rb"|CREATE (?:CONSTRAINT )?TRIGGER "
        rb"|ALTER (?:TABLE|SEQUENCE|INDEX|STATISTICS|PUBLICATION) |COMMENT ON "
    ),
    data=re.compile(rb'COPY (?:(?:\w+|"[^"\\\n]+")\.)?(?:\w+|"[^"\\\n]+") \([\w", ]*\) FROM stdin;\n'),
    quote=re.compile(rb"'[^'\\]*(?:\\[^'][^'\\]*)*('|\Z)|\"[^\"\\\n]*\"", re.DOTALL),
    suspect=re.compile(rb"[\\'\"$\0]|--|/\*|;\s*\S"),
)


def require_no_commands(dump: Path, *, for_psql: bool) -> None:
    """Raise NotConfigured, with the line, if a dump has anything but statements and data of tables."""
    grammar = _POSTGRESQL if for_psql else _MYSQL
    with dump.open("rb") as stream:
        rejection = next(_find_commands(stream, grammar), None)
    if rejection is not None:
        number, line = rejection
        text = ascii(line[: SHOWN_MAX + 1].decode("utf-8", "replace").strip())
        raise NotConfigured(
            f"line {number} of {dump.name} is no statement of a dump, and could run a command: {text}"
        )


def comment_out_restrictions(dump: Path) -> None:
    r"""Make comments of ``\restrict`` and ``\unrestrict``, in their places: the load has a key of its own."""
    with dump.open("r+b") as stream:
        size = dump.stat().st_size
        for start in sorted({0, max(0, size - EDGE_BYTES)}):
            stream.seek(start)
            for line in _RESTRICT.finditer(stream.read(EDGE_BYTES)):
                stream.seek(start + line.start())
                stream.write(b"--")


def _find_commands(lines: Iterator[bytes], grammar: _Grammar) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that no dump has, with their numbers; an end within a statement counts as one."""
    is_data = in_statement = False
    quote, depth, number, line = b"", 0, 0, b""
    for number, line in enumerate(lines, 1):
        if is_data:
            is_data = line not in _END_OF_DATA
            continue
        if not in_statement:
            if grammar.between.fullmatch(line):
                continue
            if grammar.data.fullmatch(line):
                is_data = True
                continue
            if not grammar.start.match(line):
                yield number, line
            in_statement, depth = True, 0
        outside, quote = _outside(quote + line, grammar)
        if grammar.suspect.search(outside):
            yield number, line
        depth += outside.count(b"(") - outside.count(b")")
        in_statement = bool(quote) or not outside.rstrip().endswith(b";")
        if depth and not in_statement:  # psql does not end it at such a semicolon
            yield number, line
    if is_data or in_statement:
        yield number, line


def _outside(text: bytes, grammar: _Grammar) -> tuple[bytes, bytes]:
    """Return a line without what is quoted, and the quote that is open at its end, if any."""
    quote = b""

    def replace(match: re.Match[bytes]) -> bytes:
        nonlocal quote
        if match[1] == b"":
            quote = match[0][:1]
        return b" "

    return grammar.quote.sub(replace, text), quote
