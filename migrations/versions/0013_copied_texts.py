"""Columns that get copies of a job's texts become as wide as the job's, which users of XXL-JOB have widened.

Revision: 0013_copied_texts, after 0012_utf8mb4. MySQL and MariaDB only, as there are no adopted databases
elsewhere. Tables whose columns are wide enough, as those of the original, are left unchanged. A log whose
column becomes a TEXT is rebuilt once and cannot be written meanwhile: with millions of rows that takes
minutes. Each table is changed in one statement, so that an interrupted upgrade can be repeated.
"""

import re

import sqlalchemy as sa
from alembic import op

revision = "0013_copied_texts"
down_revision = "0012_utf8mb4"

JOB = "xxl_job_info"
#: table -> columns with copies of the job's columns of the same names
COPIES = {"xxl_job_log": ("executor_handler", "executor_param"), "xxl_job_fire": ("executor_param",)}
#: longer ones become a TEXT, as the columns of a row have 65,535 bytes together
VARCHAR_MAX = 1_000
#: most bytes of each type
TEXTS = {"text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
COLUMNS = """
    SELECT column_name, character_octet_length, character_maximum_length, collation_name
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = :table AND collation_name IS NOT NULL
"""
#: in SHOW CREATE TABLE: name, type, then what is kept, such as default and comment
DEFINITION = re.compile(
    r"^  [`\"](\w+)[`\"] (?:(?:var)?char\(\d+\)|\w*text)(?: CHARACTER SET \w+)?(?: COLLATE \w+)?(.*?),?$",
    re.MULTILINE,
)
#: default at the start of what is kept; MySQL takes one of a TEXT only as an expression, in parentheses
LITERAL_DEFAULT = re.compile(r"^((?: NOT NULL)? DEFAULT )('(?:[^']|'')*')")


def upgrade() -> None:
    """Widen the columns that are narrower than the job's."""
    connection = op.get_bind()
    if connection.dialect.name not in ("mysql", "mariadb"):
        return
    of_job = columns_of(JOB)
    for table, names in COPIES.items():
        copies = columns_of(table)
        narrow = [name for name in names if copies[name][0] < of_job[name][0]]
        if not narrow:
            continue
        (_, created) = connection.exec_driver_sql(f"SHOW CREATE TABLE {table}").one()
        kept = {name: LITERAL_DEFAULT.sub(r"\1(\2)", rest) for name, rest in DEFINITION.findall(created)}
        changes = [
            f"MODIFY COLUMN `{name}` {type_for(*of_job[name][:2])} CHARACTER SET utf8mb4"
            f" COLLATE {copies[name][2]}{kept[name]}"
            for name in narrow
        ]
        connection.exec_driver_sql(f"ALTER TABLE {table} {', '.join(changes)}".replace("%", "%%"))


def columns_of(table: str) -> dict[str, tuple[int, int, str]]:
    """Return column of text -> its width in bytes and in characters, and its collation."""
    rows = op.get_bind().execute(sa.text(COLUMNS), {"table": table})
    return {name: (int(octets), int(characters), collation) for name, octets, characters, collation in rows}


def type_for(octets: int, characters: int) -> str:
    """Return the type that holds every text of a column of this width."""
    if characters <= VARCHAR_MAX:
        return f"varchar({characters})"
    return next(kind for kind, most in TEXTS.items() if octets <= most)
