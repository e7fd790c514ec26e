"""Adopted tables of MySQL and MariaDB in another character set become utf8mb4, which has every character.

Revision: 0012_utf8mb4, after 0011_own_schema. Tables in utf8mb4, as those of the original, are left
unchanged. Another one is rebuilt once and cannot be written meanwhile: a log of millions of rows takes
minutes. Each table is changed in one statement, so that an interrupted upgrade can be repeated.
"""

import re
from collections.abc import Mapping

import sqlalchemy as sa
from alembic import op

revision = "0012_utf8mb4"
down_revision = "0011_own_schema"

TABLES = (
    "xxl_job_info",
    "xxl_job_log",
    "xxl_job_log_report",
    "xxl_job_logglue",
    "xxl_job_registry",
    "xxl_job_group",
    "xxl_job_user",
    "xxl_job_lock",
)
#: where a collation has no counterpart: that of the original's tables
COLLATION = "utf8mb4_unicode_ci"
#: and where that would make different texts equal
EXACT = "utf8mb4_bin"
#: most characters of a VARCHAR in utf8mb4
VARCHAR_MAX = 16_383
OTHER_TABLES = """
    SELECT table_name, table_collation, row_format FROM information_schema.tables AS found
    WHERE table_schema = DATABASE() AND table_name IN :tables AND (
        table_collation NOT LIKE 'utf8mb4%' OR EXISTS (
            SELECT 1 FROM information_schema.columns AS its
            WHERE its.table_schema = found.table_schema AND its.table_name = found.table_name
            AND its.character_set_name <> 'utf8mb4'))
"""
COLUMNS = """
    SELECT column_name, collation_name FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = :table AND collation_name IS NOT NULL
"""
UNIQUE = """
    SELECT column_name FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = :table AND non_unique = 0
"""
#: MariaDB lists some without their character set, as uca1400_as_cs
KNOWN = "SELECT COUNT(*) FROM information_schema.collations WHERE collation_name IN (:name, :way)"
#: a column of text in SHOW CREATE TABLE: name, type, then what is kept, such as default and comment
DEFINITION = re.compile(
    r"^  [`\"](\w+)[`\"] ((?:var)?char\(\d+\)|\w*text)(?: CHARACTER SET \w+)?(?: COLLATE \w+)?(.*?),?$",
    re.MULTILINE,
)


def upgrade() -> None:
    """Convert the tables that are not utf8mb4."""
    connection = op.get_bind()
    if connection.dialect.name not in ("mysql", "mariadb"):
        return
    found = sa.text(OTHER_TABLES).bindparams(sa.bindparam("tables", TABLES, expanding=True))
    for table, collation, row_format in connection.execute(found).all():
        changes = [f"DEFAULT CHARACTER SET utf8mb4 COLLATE {counterpart(collation)}", *columns_of(table)]
        if row_format in ("Compact", "Redundant"):  # where an index has 191 characters of utf8mb4 at most
            changes.append("ROW_FORMAT = DYNAMIC")
        statement = f"ALTER TABLE {table} {', '.join(changes)}"
        connection.exec_driver_sql(statement.replace("%", "%%"))


def columns_of(table: str) -> list[str]:
    """Return the change of each column of text; those compared by code point stay so.

    CONVERT TO would give all columns one collation. As it does, a text that may become too long for its type
    is made a MEDIUMTEXT.
    """
    connection = op.get_bind()
    collations: Mapping[str, str] = dict(
        connection.execute(sa.text(COLUMNS), {"table": table}).tuples().all()
    )
    unique = set(connection.scalars(sa.text(UNIQUE), {"table": table}))
    (_, created) = connection.exec_driver_sql(f"SHOW CREATE TABLE {table}").one()
    changes = []
    for name, kind, kept in DEFINITION.findall(created):
        collation = counterpart(collations[name])
        if name in unique and merges(table, name, collation):
            collation = EXACT
        if is_outgrown(kind, collations[name]):
            kind = "mediumtext"
        changes.append(f"MODIFY COLUMN `{name}` {kind} CHARACTER SET utf8mb4 COLLATE {collation}{kept}")
    return changes


def counterpart(collation: str) -> str:
    """Return the collation of utf8mb4 that compares in the same way, or nearly so."""
    charset, _, way = collation.partition("_")
    if charset == "utf8mb4":
        return collation
    name = f"utf8mb4_{way}"
    if op.get_bind().scalar(sa.text(KNOWN), {"name": name, "way": way}):
        return name
    return EXACT if way.endswith("_cs") else COLLATION


def merges(table: str, column: str, collation: str) -> bool:
    """Whether different values of a unique column are equal in a collation."""
    values = (
        f"COUNT(DISTINCT `{column}`), COUNT(DISTINCT CONVERT(`{column}` USING utf8mb4) COLLATE {collation})"
    )
    (before, after) = op.get_bind().exec_driver_sql(f"SELECT {values} FROM {table}").one()  # nosec B608
    return bool(after < before)


def is_outgrown(kind: str, collation: str) -> bool:
    """Whether a column's type is too small for its longest text in utf8mb4."""
    if kind.startswith("varchar"):
        return int(kind[len("varchar(") : -1]) > VARCHAR_MAX
    return kind == "text" and not collation.startswith("utf8")
