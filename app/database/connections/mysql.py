"""Connections of MySQL and MariaDB: options of the driver, and the set-up of a session."""

from typing import Any

from sqlalchemy import Connection, make_url, text

from app.database.connections import mysql_drivers, servers
from app.database.connections.server_checks import require_suitable, require_version
from app.settings.config import Config


def driver_arguments(config: Config) -> dict[str, Any]:
    """Return arguments of the driver: time-outs, and how values are converted."""
    waits = dict.fromkeys(("read_timeout", "write_timeout"), config.database_answer_s)
    conversions = mysql_drivers.conversions(make_url(config.database_url).get_driver_name())
    return waits | {"connect_timeout": servers.CONNECT_S, "conv": conversions}


def require_usable(connection: Connection) -> None:
    """Raise NotConfigured for a server that is too old, or another product that passes for MySQL."""
    require_suitable(connection.scalar(text("SELECT CONCAT(VERSION(), ' ', @@version_comment)")) or "")
    is_mariadb = getattr(connection.dialect, "is_mariadb", False)
    require_version("MariaDB" if is_mariadb else "MySQL", connection.dialect.server_version_info)


class MySqlConnections(servers.ServerConnections):
    """Connections of PyMySQL or mysqlclient."""

    def set_up(self, connection: Any, record: Any) -> None:
        """Limit waits for locks, and let MariaDB use the index for a list of ids.

        It would join a list of 1,000 or more, and so read, and lock, all rows of a table that is not much
        longer.
        """
        version = connection.get_server_info()
        require_suitable(version)
        names = ("innodb_lock_wait_timeout", "lock_wait_timeout")
        # Whole seconds, rounded down: it ends first. MySQL does not take the decimal that LEAST returns.
        wait_s = max(int(self.lock_wait_s), 1)
        settings = [f"{name} = CAST(LEAST(@@{name}, {wait_s}) AS UNSIGNED)" for name in names]
        if "mariadb" in version.lower():
            settings.append("in_predicate_conversion_threshold = 0")
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION {', '.join(settings)}")

    def readable(self, connection: Any) -> Any:
        """Return the socket."""
        return mysql_drivers.socket_of(connection) if connection.open else None

    def may_have_transaction(self, connection: Any) -> bool:
        """Whether the status that comes with answers says so."""
        return mysql_drivers.may_have_transaction(connection)
