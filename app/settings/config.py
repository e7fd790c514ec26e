"""Configuration: all settings, read once from ``XXL_JOB_*`` environment variables and validated.

An unknown ``XXL_JOB_*`` name or an invalid value raises ``NotConfigured`` with the name and what is expected.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from app.errors import NotConfigured
from app.settings import parsers
from app.settings.log_archive import ArchiveConfig, settings_of
from app.settings.oidc import OIDC_SETTINGS, OidcConfig, oidc_config
from app.settings.sources import ENVIRONMENT, SettingValue, display_text, gather
from app.settings.system_zone import system_zone

Network = IPv4Network | IPv6Network

#: variables of the executor client, ignored by console and workers
CLIENT_VARIABLES = frozenset(
    {
        "XXL_JOB_ADMIN_ADDRESSES",
        "XXL_JOB_EXECUTOR_APPNAME",
        "XXL_JOB_EXECUTOR_HOST",
        "XXL_JOB_EXECUTOR_PORT",
        "XXL_JOB_EXECUTOR_ADDRESS",
        "XXL_JOB_EXECUTOR_LOG_PATH",
        "XXL_JOB_EXECUTOR_LOG_RETENTION_DAYS",
        "XXL_JOB_EXECUTOR_LOG_LEVEL",
        "XXL_JOB_EXECUTOR_ROUTE_LOGGING",
        "XXL_JOB_EXECUTOR_CAPTURE_OUTPUT",
        "XXL_JOB_EXECUTOR_SHUTDOWN_WAIT_SECONDS",
        "XXL_JOB_EXECUTOR_METRICS",
        "XXL_JOB_EXECUTOR_ALLOW_GLUE",
        "XXL_JOB_EXECUTOR_SCRIPT_CPU_SECONDS",
        "XXL_JOB_EXECUTOR_SCRIPT_MEMORY_MB",
        "XXL_JOB_EXECUTOR_SCRIPT_FILE_MB",
        "XXL_JOB_EXECUTOR_SCRIPT_PROCESSES",
        "XXL_JOB_EXECUTOR_SCRIPT_OPEN_FILES",
    }
)
#: variables of the command line over the API, ignored too
CLI_VARIABLES = frozenset({"XXL_JOB_URL", "XXL_JOB_TOKEN", "XXL_JOB_TOKEN_FILE", "XXL_JOB_PROFILE"})
#: default networks of executor addresses: loopback and the private ranges
DEFAULT_NETWORKS = "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7"
#: a shorter log retention, in days, keeps logs forever, as in XXL-JOB
MIN_RETENTION_DAYS = 7
#: well-known tokens, such as the default of XXL-JOB
REFUSED_TOKENS = frozenset({"default_token"})
MIN_TOKEN_LENGTH = 16
#: of the application key
MIN_KEY_LENGTH = 32
LANGUAGES = ("zh_CN", "zh_TW", "en")
#: longest wait for an answer of the database that can be set
ANSWER_MAX_S = 600


@dataclass(frozen=True, slots=True)
class MailConfig:
    """Mail server for alarms; with an empty host no mail is sent."""

    host: str = ""
    #: 465 with TLS from the first byte, 587 with STARTTLS, 25 without
    port: int = 587
    username: str = ""
    password: str = field(default="", repr=False)
    #: sender address; empty: the user name
    sender: str = ""
    #: ``starttls``, ``tls`` or ``none``
    security: str = "starttls"


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of console and workers. Quantities carry their unit in the name."""

    home: Path = field(default_factory=lambda: Path("instance"))
    #: SQLAlchemy URL; never printed with its password
    database_url: str = field(default="", repr=False)
    #: whether statements are prepared on PostgreSQL; False for some poolers
    database_prepare: bool = True
    #: how long a statement of the services waits for the server's answer
    database_answer_s: int = 30
    host: str = "127.0.0.1"
    port: int = 8080
    allowed_hosts: tuple[str, ...] = ()
    context_path: str = "/xxl-job-admin"
    #: accepted tokens, of which the first is sent; empty: the file in the home folder (``app.settings.home``)
    access_tokens: tuple[str, ...] = field(default=(), repr=False)
    admin_password: str = field(default="", repr=False)
    #: application key: seals stored tokens, signs forms; empty: the file in the home folder
    secret_key: str = field(default="", repr=False)
    time_zone: str = "UTC"
    language: str = "zh_CN"
    trigger_timeout_s: int = 3
    fast_max: int = 200
    slow_max: int = 100
    address_inflight_max: int = 32
    #: 0: kept forever
    log_retention_days: int = 30
    shared_with_java: bool = False
    executor_networks: tuple[Network, ...] = ()
    #: what /metrics requires of a request, each if configured; it is off without both
    metrics_tokens: tuple[str, ...] = field(default=(), repr=False)
    metrics_networks: tuple[Network, ...] = ()
    #: number of trusted reverse proxies, which set X-Forwarded headers
    proxy_count: int = 0
    #: address of the console in the links of alarms; empty: from host and port
    public_url: str = ""
    log_level: str = "INFO"
    log_format: str = "text"
    access_log: bool = False
    #: a statement that takes longer is logged; 0: none is
    slow_statement_ms: int = 500
    node_name: str = ""
    threads: int = 32
    mail: MailConfig = field(default_factory=MailConfig)
    oidc: OidcConfig = field(default_factory=OidcConfig)
    archive: ArchiveConfig = field(default_factory=ArchiveConfig)
    #: Apprise URLs that receive every alarm
    alarm_urls: tuple[str, ...] = field(default=(), repr=False)
    #: to which each console posts while promises are evaluated; its path is often a secret
    heartbeat_url: str = field(default="", repr=False)
    #: variable -> where it was set: ``environment``, or a file
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        dotenv: Path | None = Path(".env"),
        env_file: Path | None = None,
        default_home: Path = Path("instance"),
    ) -> "Config":
        """Read and validate all variables; the environment overrides ``env_file``, that ``dotenv``.

        ``env_file`` is None or must exist, ``dotenv`` is optional.
        Raises NotConfigured with one line that names the variable, its value and what is expected.
        """
        values = _gather(os.environ if environ is None else environ, dotenv, env_file)
        settings: dict[str, Any] = {}
        mail: dict[str, Any] = {}
        oidc: dict[str, Any] = {}
        archive: dict[str, Any] = {}
        parts = {"XXL_JOB_MAIL_": mail, "XXL_JOB_OIDC_": oidc, "XXL_JOB_LOG_ARCHIVE": archive}
        for variable, value in values.items():
            name, parse = SETTINGS[variable]
            try:
                part = next((part for prefix, part in parts.items() if variable.startswith(prefix)), settings)
                part[name] = parse(value.text)
            except ValueError as exc:
                value_text = "" if variable in SECRET_VARIABLES else f"={display_text(value.text)!r}"
                place = "" if value.source == ENVIRONMENT else f" ({value.source})"
                raise NotConfigured(f"{variable}{value_text}{place}: {exc}") from exc
        settings["mail"] = _checked_mail(mail, values.keys())
        oidc_names = values.keys() & OIDC_SETTINGS
        settings["oidc"] = oidc_config(oidc, oidc_names, public_url=settings.get("public_url", ""))
        settings["archive"] = ArchiveConfig(**archive)
        settings.setdefault("time_zone", system_zone())
        settings.setdefault("executor_networks", _networks(DEFAULT_NETWORKS))
        home = Path(settings.get("home", default_home)).absolute()
        settings["home"] = home
        settings["sources"] = {variable: value.source for variable, value in values.items()}
        settings.setdefault("database_url", f"sqlite:///{home / 'xxl_job.db'}")
        return cls(**settings)

    @property
    def is_sqlite(self) -> bool:
        """True if the database is a SQLite file (one node)."""
        return self.database_url.startswith("sqlite")

    @property
    def on_loopback(self) -> bool:
        """True if the console listens on loopback only."""
        return self.host in {"127.0.0.1", "::1", "localhost"}

    @property
    def address(self) -> str:
        """URL of the console, with the address it listens on."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.context_path}"


def _gather(
    environ: Mapping[str, str], dotenv: Path | None, env_file: Path | None
) -> dict[str, SettingValue]:
    files = [dotenv] if dotenv is not None and dotenv.is_file() else []
    files += [env_file] if env_file is not None else []
    names = SETTINGS.keys() | CLIENT_VARIABLES | CLI_VARIABLES
    values = gather(environ, files, names=names, secrets=SECRET_VARIABLES)
    return {variable: value for variable, value in values.items() if variable in SETTINGS}


def _checked_mail(values: dict[str, Any], names: Collection[str]) -> MailConfig:
    """Return the settings of mail; raises NotConfigured for a combination that cannot work."""
    mail = MailConfig(**values)
    mail_names = sorted(name for name in names if name.startswith("XXL_JOB_MAIL_"))
    if mail_names and not mail.host:
        raise NotConfigured(f"{mail_names[0]} needs XXL_JOB_MAIL_HOST, the mail server")
    if mail.host and not mail.sender:
        try:
            parsers.mail_sender(mail.username)
        except ValueError as exc:
            reason = f" ({mail.username!r} is no address)" if mail.username else ""
            raise NotConfigured(
                f"XXL_JOB_MAIL_HOST needs XXL_JOB_MAIL_FROM, the address of the sender{reason}"
            ) from exc
    return mail


def _text(text: str) -> str:
    return text


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return int(text)

    return parse


def _choice(*options: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        match = {option.lower(): option for option in options}.get(text.lower())
        if match is None:
            raise ValueError(f"expected one of {', '.join(options)}")
        return match

    return parse


def _switch(text: str) -> bool:
    return _choice("true", "false", "1", "0")(text) in {"true", "1"}


def _tokens(text: str) -> tuple[str, ...]:
    tokens = tuple(token.strip() for token in text.split(","))
    if len(tokens) > 2:
        raise ValueError("expected one token, or two separated by a comma during a token change")
    for token in tokens:
        if token in REFUSED_TOKENS or len(token) < MIN_TOKEN_LENGTH:
            raise ValueError(
                f"expected at least {MIN_TOKEN_LENGTH} characters, and not a known token like default_token"
            )
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("expected printable ASCII characters without spaces")
    return tokens


def _password(text: str) -> str:
    if not 8 <= len(text) <= 128:
        raise ValueError("expected 8 to 128 characters")
    return text


def _secret_key(text: str) -> str:
    if len(text) < MIN_KEY_LENGTH:
        raise ValueError(
            f"expected at least {MIN_KEY_LENGTH} characters, such as 64 random hexadecimal digits"
        )
    return text


def _networks(text: str) -> tuple[Network, ...]:
    try:
        networks = tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())
    except ValueError as exc:
        raise ValueError(f"expected networks such as 10.0.0.0/8, separated by commas ({exc})") from exc
    if not networks:
        raise ValueError("expected networks such as 10.0.0.0/8, separated by commas")
    return networks


def _list(text: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[,\s]+", text) if part)


def _retention(text: str) -> int:
    days = _whole(0, 36_500)(text)
    return days if days >= MIN_RETENTION_DAYS else 0


#: variable -> (field of Config or of a part, parser that raises ValueError with what is expected)
SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "XXL_JOB_HOME": ("home", parsers.home),
    "XXL_JOB_DATABASE_URL": ("database_url", parsers.database_url),
    "XXL_JOB_DATABASE_PREPARE": ("database_prepare", _switch),
    "XXL_JOB_DATABASE_ANSWER_S": ("database_answer_s", _whole(5, ANSWER_MAX_S)),
    "XXL_JOB_HOST": ("host", parsers.host),
    "XXL_JOB_PORT": ("port", _whole(1, 65_535)),
    "XXL_JOB_ALLOWED_HOSTS": ("allowed_hosts", parsers.hosts),
    "XXL_JOB_CONTEXT_PATH": ("context_path", parsers.context_path),
    "XXL_JOB_ACCESS_TOKEN": ("access_tokens", _tokens),
    "XXL_JOB_ADMIN_PASSWORD": ("admin_password", _password),
    "XXL_JOB_SECRET_KEY": ("secret_key", _secret_key),
    "XXL_JOB_TIMEZONE": ("time_zone", parsers.time_zone),
    "XXL_JOB_LANGUAGE": ("language", _choice(*LANGUAGES)),
    "XXL_JOB_TRIGGER_TIMEOUT": ("trigger_timeout_s", _whole(1, 10)),
    "XXL_JOB_TRIGGERPOOL_FAST_MAX": ("fast_max", _whole(1, 10_000)),
    "XXL_JOB_TRIGGERPOOL_SLOW_MAX": ("slow_max", _whole(1, 10_000)),
    "XXL_JOB_ADDRESS_INFLIGHT_MAX": ("address_inflight_max", _whole(1, 10_000)),
    "XXL_JOB_LOG_RETENTION_DAYS": ("log_retention_days", _retention),
    "XXL_JOB_SHARED_WITH_JAVA": ("shared_with_java", _switch),
    "XXL_JOB_EXECUTOR_NETWORKS": ("executor_networks", _networks),
    "XXL_JOB_METRICS_TOKEN": ("metrics_tokens", _tokens),
    "XXL_JOB_METRICS_NETWORKS": ("metrics_networks", _networks),
    "XXL_JOB_PROXY_COUNT": ("proxy_count", _whole(0, 10)),
    "XXL_JOB_PUBLIC_URL": ("public_url", parsers.web_url),
    "XXL_JOB_LOG_LEVEL": ("log_level", _choice("DEBUG", "INFO", "WARNING", "ERROR")),
    "XXL_JOB_LOG_FORMAT": ("log_format", _choice("text", "json")),
    "XXL_JOB_ACCESS_LOG": ("access_log", _switch),
    "XXL_JOB_SLOW_STATEMENT_MS": ("slow_statement_ms", _whole(0, 600_000)),
    "XXL_JOB_NODE_NAME": ("node_name", parsers.name),
    "XXL_JOB_THREADS": ("threads", _whole(4, 512)),
    "XXL_JOB_ALARM_URLS": ("alarm_urls", _list),
    "XXL_JOB_HEARTBEAT_URL": ("heartbeat_url", parsers.web_url),
    "XXL_JOB_MAIL_HOST": ("host", parsers.host),
    "XXL_JOB_MAIL_PORT": ("port", _whole(1, 65_535)),
    "XXL_JOB_MAIL_USERNAME": ("username", _text),
    "XXL_JOB_MAIL_PASSWORD": ("password", _text),
    "XXL_JOB_MAIL_FROM": ("sender", parsers.mail_sender),
    "XXL_JOB_MAIL_SECURITY": ("security", _choice("starttls", "tls", "none")),
    **OIDC_SETTINGS,
    **settings_of(_whole, _choice),
}
#: variables whose values never appear in error messages
SECRET_VARIABLES = frozenset(
    {
        "XXL_JOB_ACCESS_TOKEN",
        "XXL_JOB_ADMIN_PASSWORD",
        "XXL_JOB_METRICS_TOKEN",
        "XXL_JOB_SECRET_KEY",
        "XXL_JOB_DATABASE_URL",
        "XXL_JOB_MAIL_PASSWORD",
        "XXL_JOB_ALARM_URLS",
        "XXL_JOB_HEARTBEAT_URL",
        "XXL_JOB_LOG_ARCHIVE_URL",
        "XXL_JOB_OIDC_CLIENT_SECRET",
    }
)
