"""Checks of a database server: products that pass for MySQL or PostgreSQL."""

import pytest
from sqlalchemy import text

from app.database.connections.server_checks import require_suitable
from app.database.dialects.choice import plain_engine
from app.database.opening import check_database
from app.errors import NotConfigured
from app.services.doctor.examination import examine
from app.settings.config import Config

COCKROACH = "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)"


@pytest.mark.parametrize(
    ("version", "product"),
    [
        ("8.0.11-TiDB-v8.5.6", "TiDB"),
        (
            "5.7.25-TiDB-v6.1.0 TiDB Server (Apache License 2.0) Community Edition, MySQL 5.7 compatible",
            "TiDB",
        ),
        ("8.0.11 TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible", "TiDB"),
        (COCKROACH, "CockroachDB"),
        ("CockroachDB OSS v22.2.0 (x86_64-pc-linux-gnu)", "CockroachDB"),
    ],
)
def test_a_server_whose_locks_cannot_be_relied_on_is_refused_by_its_version(
    version: str, product: str
) -> None:
    with pytest.raises(
        NotConfigured, match=rf"^{product} \(.*\) is not supported: .*; use MySQL, MariaDB or Po"
    ):
        require_suitable(version)


@pytest.mark.parametrize(
    "version",
    [
        "8.0.44-0ubuntu0.22.04.1 (Ubuntu)",
        "9.7.0 MySQL Community Server - GPL",
        "10.11.14-MariaDB-0+deb12u2 Debian 12",
        "5.5.5-10.11.14-MariaDB-0+deb12u2",
        "8.0.35-27 Percona Server (GPL), Release 27, Revision 2f8eeab2",
        "8.0.39 Source distribution",
        "8.0.30-Vitess",
        "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit",
        "PostgreSQL 15.2-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit",
        "PostgreSQL 16.4 on aarch64-unknown-linux-gnu, compiled by gcc, 64-bit",
    ],
)
def test_relatives_that_are_not_proven_wrong_are_accepted(version: str) -> None:
    require_suitable(version)


@pytest.mark.databases("mariadb")
def test_a_database_of_tidb_is_refused_at_the_start(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    check_database(config)
    monkeypatch.setattr("pymysql.connections.Connection.get_server_info", lambda _: "8.0.11-TiDB-v8.5.6")
    with pytest.raises(
        NotConfigured, match=r"^XXL_JOB_DATABASE_URL: TiDB \(8\.0\.11-TiDB-v8\.5\.6\) is not supp"
    ):
        check_database(config)
    assert "TiDB" in examine(config).findings[-1].text


@pytest.mark.databases("postgresql")
def test_a_database_of_cockroachdb_is_refused_at_the_start(config: Config, empty_database: str) -> None:
    with plain_engine(empty_database).begin() as connection:
        body = f"AS $$ SELECT '{COCKROACH}'::text $$"
        connection.execute(
            text(f"CREATE OR REPLACE FUNCTION pg_catalog.version() RETURNS text LANGUAGE sql STABLE {body}")
        )
    other = Config(home=config.home, database_url=empty_database)
    with pytest.raises(
        NotConfigured, match=r"^XXL_JOB_DATABASE_URL: CockroachDB \(CockroachDB CCL v23\.1\.11"
    ) as refusal:
        check_database(other)
    assert "\n" not in str(refusal.value)
    assert "CockroachDB" in examine(other).findings[-1].text
