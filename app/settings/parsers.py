"""Parsers of settings: addresses, hosts, databases, mail, time zones.

Each returns the value, or raises ValueError with what is expected.
"""

import re
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

#: of names shown in tables
NAME_MAX = 60
_HOST_NAME = re.compile(r"(?=.{1,253}\.?\Z)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_-]{1,63})*\.?")
_SERVER = re.compile(
    r"(?P<scheme>mysql\+(?:pymysql|mysqldb)|postgresql\+psycopg)://"
    r"(?:[^:/@?]*(?::[^@]*)?@)?(?:\[[^\]]*\]|[^:/?@]*)(?::(?P<port>[^/?@]*))?"
    r"/(?P<database>[^?@]+)(?:\?(?P<query>.*))?"
)
_DATABASE_SHAPE = (
    "expected sqlite:///FILE, mysql+pymysql://USER:PASSWORD@HOST/DATABASE or postgresql+psycopg://…"
)
#: first parts of paths that are answered outside the context path
RESERVED_PATHS = frozenset({"api", "health", "ready", "metrics", "actuator"})
#: files of the time zone folder whose meaning depends on the host
_HOST_SPECIFIC = frozenset({"localtime", "posixrules", "Factory"})
#: copies of the zones with other rules; those of "right/" count leap seconds
_WITH_OTHER_RULES = ("posix/", "right/")


def home(text: str) -> Path:
    """Parse the home folder; in the URL of its database a question mark would end the file's name."""
    if "?" in text:
        raise ValueError("expected a folder without ? in its name")
    return Path(text)


def database_url(text: str) -> str:
    """Parse an SQLAlchemy URL; MySQL gets the character set that the tables need, and no other."""
    if text.startswith("sqlite:///"):
        if text.removeprefix("sqlite:///").partition("?")[0] in ("", ":memory:"):
            raise ValueError("expected sqlite:///FILE: the processes share the database")
        return text
    server = _SERVER.fullmatch(text)
    if server is None:
        hint = "; a password with @ has %40 for it" if text.count("@") > 1 else ""
        raise ValueError(_DATABASE_SHAPE + hint)
    if server["port"] is not None and not _is_port(server["port"]):
        raise ValueError(_port_problem(server["scheme"], server["port"]))
    _refuse_jdbc(server["query"])
    if server["scheme"] == "mysql+mysqldb":
        _require_mysqlclient()
    if text.startswith("mysql"):
        return _with_charset(text, server["query"])
    for name, value in parse_qsl(server["query"] or "", keep_blank_values=True):
        if name == "prepare_threshold" and not re.fullmatch(r"(?i)none|[0-9]{1,4}", value):
            raise ValueError("expected prepare_threshold=none, or a number such as 5")
    return text


def _port_problem(scheme: str, port: str) -> str:
    if "," not in port:
        return f"{_DATABASE_SHAPE}; its port is not a number from 1 to 65535"
    if scheme.startswith("mysql"):
        return "expected one server: the drivers of MySQL take no list; put a balancer in front of several"
    return (
        "several servers go behind the ?, such as postgresql+psycopg://USER:PASSWORD@/DATABASE"
        "?host=HOST1:5432&host=HOST2:5432&target_session_attrs=read-write"
    )


def _refuse_jdbc(query: str | None) -> None:
    """Raise ValueError for a parameter of JDBC, which are known by their capitals: the drivers' have none."""
    for name, _ in parse_qsl(query or "", keep_blank_values=True):
        if name != name.lower():
            raise ValueError(
                f"{name} is a parameter of JDBC, which the driver does not know; leave it out: the character"
                " set is always UTF-8, and the time zone is XXL_JOB_TIMEZONE"
            )


def _require_mysqlclient() -> None:
    try:
        import_module("MySQLdb")
    except ImportError as exc:
        raise ValueError(
            f"mysql+mysqldb needs the Python package mysqlclient, which cannot be loaded ({exc});"
            " install it, or use mysql+pymysql"
        ) from exc


def _with_charset(url: str, query: str | None) -> str:
    parameters = parse_qsl(query or "", keep_blank_values=True)
    charsets = [value for name, value in parameters if name == "charset"]
    for charset in charsets:
        if charset.lower() != "utf8mb4":
            raise ValueError(f"expected charset=utf8mb4, or none; {charset} does not have every character")
    return url if charsets else url + ("?" if query is None else "&") + "charset=utf8mb4"


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 65_536


def host(text: str) -> str:
    """Parse a host name or an IP address, without port and brackets."""
    if not _is_host(text):
        raise ValueError("expected a host name or an IP address, without port")
    return text


def hosts(text: str) -> tuple[str, ...]:
    """Parse host names separated by commas or blanks."""
    names = tuple(part for part in re.split(r"[,\s]+", text) if part)
    for name in names:
        if not _is_host(name.strip("[]")):
            raise ValueError(
                f"expected host names without scheme and port, such as jobs.example.com; not {name}"
            )
    return names


def _is_host(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return _HOST_NAME.fullmatch(text) is not None
    return True


def web_url(text: str) -> str:
    """Parse the address of a web site with an optional path."""
    try:
        url = urlsplit(text)
        is_valid = url.scheme in ("http", "https") and _is_host(url.hostname or "") and url.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or re.search(r"[@?#\s]", text) or not text.isprintable():
        raise ValueError("expected https://HOST/PATH or http://…, without user, query and fragment")
    return text


def name(text: str) -> str:
    """Parse a name that is shown in tables."""
    if len(text) > NAME_MAX or not text.isprintable():
        raise ValueError(f"expected at most {NAME_MAX} printable characters")
    return text


def context_path(text: str) -> str:
    """Parse the prefix of pages and endpoints; empty for none."""
    path = "/" + text.strip("/")
    if path != "/" and re.fullmatch(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)+", path) is None:
        raise ValueError("expected a path such as /xxl-job-admin, or / for none")
    first = path.split("/")[1]
    if first in RESERVED_PATHS:
        raise ValueError(f"expected a path that does not begin with /{first}, which has a use of its own")
    return "" if path == "/" else path


def mail_sender(text: str) -> str:
    """Parse the address of a sender, with or without a name before it."""
    if (
        re.fullmatch(r"[^<>@]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+", text) is None
        or not text.isprintable()
    ):
        raise ValueError("expected an address such as xxl-job@example.com, or Jobs <xxl-job@example.com>")
    return text


def time_zone(text: str) -> str:
    """Parse the name of a time zone."""
    if not is_zone(text):
        raise ValueError("expected the IANA name of a time zone, such as Asia/Shanghai")
    return text


def is_zone(name: str) -> bool:
    """Whether this host knows a time zone of this name, with the same rules as other hosts."""
    if name in _HOST_SPECIFIC or name.startswith(_WITH_OTHER_RULES):
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
