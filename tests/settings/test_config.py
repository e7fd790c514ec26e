"""Configuration: valid and invalid values of every setting, error messages, hidden secrets."""

import re
import sys
from ipaddress import ip_network
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from app.domain.access.permissions import Right
from app.errors import NotConfigured
from app.settings.config import (
    CLI_VARIABLES,
    CLIENT_VARIABLES,
    DEFAULT_NETWORKS,
    SECRET_VARIABLES,
    SETTINGS,
    Config,
)
from app.settings.oidc import OIDC_SETTINGS, RIGHTS, Grant, OidcConfig
from app.settings.sources import display_text
from app.settings.system_zone import system_zone
from executor_client.api import profiles
from executor_client.config.config import VARIABLES
from tests.support.truth_table import truth_table

TOKEN, OTHER = "a-token-of-some-length", "another-token-of-some-length"
WHOLE = "a whole number from"


def read(**values: str) -> Config:
    """Read settings, given without the prefix XXL_JOB_."""
    return Config.from_env({f"XXL_JOB_{name}": text for name, text in values.items()}, dotenv=None)


GOOD: list[tuple[str, str, str, Any]] = [
    ("HOME", "/var/lib/x", "home", Path("/var/lib/x")),
    ("DATABASE_URL", "sqlite:////tmp/x.db", "database_url", "sqlite:////tmp/x.db"),
    ("DATABASE_URL", "postgresql+psycopg://u:p@h/d", "database_url", "postgresql+psycopg://u:p@h/d"),
    ("DATABASE_URL", "mysql+pymysql://u:p@h/d", "database_url", "mysql+pymysql://u:p@h/d?charset=utf8mb4"),
    (
        "DATABASE_URL",
        "mysql+pymysql://u@h/d?x=1",
        "database_url",
        "mysql+pymysql://u@h/d?x=1&charset=utf8mb4",
    ),
    (
        "DATABASE_URL",
        "mysql+pymysql://u@h/d?charset=utf8mb4",
        "database_url",
        "mysql+pymysql://u@h/d?charset=utf8mb4",
    ),
    *(
        ("DATABASE_URL", url, "database_url", url)
        for url in (f"postgresql+psycopg://u@h/d?prepare_threshold={value}" for value in ("0", "20", "None"))
    ),
    ("DATABASE_PREPARE", "false", "database_prepare", False),
    ("DATABASE_ANSWER_S", "600", "database_answer_s", 600),
    ("HOST", "0.0.0.0", "host", "0.0.0.0"),
    ("HOST", "::", "host", "::"),
    ("HOST", "fe80::1%eth0", "host", "fe80::1%eth0"),
    ("PORT", "1", "port", 1),
    ("PORT", " 65535 ", "port", 65535),
    ("ALLOWED_HOSTS", "a.example, b.example  c", "allowed_hosts", ("a.example", "b.example", "c")),
    ("CONTEXT_PATH", "/", "context_path", ""),
    ("CONTEXT_PATH", "jobs/", "context_path", "/jobs"),
    ("CONTEXT_PATH", "/a/b-c.d_e~", "context_path", "/a/b-c.d_e~"),
    ("ACCESS_TOKEN", TOKEN, "access_tokens", (TOKEN,)),
    ("ACCESS_TOKEN", f"{TOKEN} , {OTHER}", "access_tokens", (TOKEN, OTHER)),
    ("ACCESS_TOKEN", "x" * 16, "access_tokens", ("x" * 16,)),
    ("ADMIN_PASSWORD", "12345678", "admin_password", "12345678"),
    ("SECRET_KEY", "k" * 32, "secret_key", "k" * 32),
    ("TIMEZONE", "Asia/Shanghai", "time_zone", "Asia/Shanghai"),
    ("LANGUAGE", "EN", "language", "en"),
    ("LANGUAGE", "zh_tw", "language", "zh_TW"),
    ("TRIGGER_TIMEOUT", "10", "trigger_timeout_s", 10),
    ("TRIGGERPOOL_FAST_MAX", "1", "fast_max", 1),
    ("TRIGGERPOOL_SLOW_MAX", "10000", "slow_max", 10000),
    ("ADDRESS_INFLIGHT_MAX", "64", "address_inflight_max", 64),
    ("LOG_RETENTION_DAYS", "7", "log_retention_days", 7),
    ("LOG_RETENTION_DAYS", "6", "log_retention_days", 0),
    ("LOG_RETENTION_DAYS", "0", "log_retention_days", 0),
    ("SHARED_WITH_JAVA", "TRUE", "shared_with_java", True),
    ("SHARED_WITH_JAVA", "false", "shared_with_java", False),
    (
        "EXECUTOR_NETWORKS",
        "10.0.0.0/8, 192.168.1.7",
        "executor_networks",
        (ip_network("10.0.0.0/8"), ip_network("192.168.1.7/32")),
    ),
    (
        "EXECUTOR_NETWORKS",
        "10.1.2.3/8,fd00::/8",
        "executor_networks",
        (ip_network("10.0.0.0/8"), ip_network("fd00::/8")),
    ),
    ("METRICS_TOKEN", f"{TOKEN},{OTHER}", "metrics_tokens", (TOKEN, OTHER)),
    ("METRICS_NETWORKS", "10.0.0.0/8", "metrics_networks", (ip_network("10.0.0.0/8"),)),
    ("PROXY_COUNT", "2", "proxy_count", 2),
    *(
        (name, url, name.lower(), url)
        for name in ("PUBLIC_URL", "HEARTBEAT_URL")
        for url in ("https://jobs.example/", "http://[::1]:8080/jobs", "https://intern_1/xxl-job-admin")
    ),
    ("LOG_LEVEL", "debug", "log_level", "DEBUG"),
    ("LOG_FORMAT", "JSON", "log_format", "json"),
    ("ACCESS_LOG", "1", "access_log", True),
    ("ACCESS_LOG", "0", "access_log", False),
    ("SLOW_STATEMENT_MS", "0", "slow_statement_ms", 0),
    ("NODE_NAME", "node-1", "node_name", "node-1"),
    ("THREADS", "512", "threads", 512),
    ("ALARM_URLS", "json://a, mailto://b", "alarm_urls", ("json://a", "mailto://b")),
]
BAD: list[tuple[str, str, str]] = [
    *(
        ("PORT", text, f"{WHOLE} 1 to 65535")
        for text in ("0", "65536", "-1", "8080.0", "eighty", "0x50", "1e3", "８０８０", "9999999999")
    ),
    ("HOME", "/srv/q?x", "expected a folder without ?"),
    *(
        (
            "DATABASE_URL",
            f"postgresql+psycopg://u@h/d?prepare_threshold={value}",
            "expected prepare_threshold=none",
        )
        for value in ("", "-1", "often")
    ),
    ("DATABASE_ANSWER_S", "4", f"{WHOLE} 5 to 600"),
    ("DATABASE_ANSWER_S", "601", f"{WHOLE} 5 to 600"),
    ("DATABASE_PREPARE", "never", "expected one of true, false"),
    *(
        ("DATABASE_URL", text, "sqlite:///FILE")
        for text in (
            *("x.db", "sqlite://", "sqlite:///:memory:", "mysql://u@h/d", "postgres://h/d", "oracle://h/d"),
            *("mysql+pymysql://u@h", "mysql+pymysql://u@h/", "postgresql+psycopg://u@h?x=/d"),
            *("mysql+pymysql://u@h:port/d", "postgresql+psycopg://u@[::1]:65536/d"),
            *("mysql+pymysql://u:p@ss@h/d", "postgresql+psycopg://u:p@s/s@h/d"),
        )
    ),
    *(
        ("DATABASE_URL", f"mysql+pymysql://u@h/d?charset={charset}", "charset=utf8mb4, or none; " + charset)
        for charset in ("utf8", "utf8mb3", "latin1")
    ),
    *(
        ("DATABASE_URL", f"{url}?{name}=x", f"{name} is a parameter of JDBC")
        for url in ("mysql+pymysql://u@h/d", "postgresql+psycopg://u@h/d")
        for name in ("characterEncoding", "useSSL", "serverTimezone", "currentSchema")
    ),
    ("DATABASE_URL", "postgresql+psycopg://u@a:5432,b:5432/d", "/DATABASE?host=HOST1:5432&host=HOST2:5432"),
    ("DATABASE_URL", "mysql+pymysql://u@a:3306,b:3306/d", "expected one server"),
    *(
        ("HOST", text, "a host name or an IP address, without port")
        for text in ("0.0.0.0:8080", "[::1]", "http://x", "a b", "-x", "x..y")
    ),
    *(("ALLOWED_HOSTS", text, "without scheme and port") for text in ("https://x", "a.example,b:80", "*")),
    *(
        (name, text, "expected https://HOST/PATH")
        for name in ("PUBLIC_URL", "HEARTBEAT_URL")
        for text in (
            *("nonsense", "jobs.example", "ftp://jobs.example", "https://", "https://u@jobs.example"),
            *(
                "https://jobs.example/?a",
                "https://jobs.example/#a",
                "https://jobs.example:x/",
                "https://a b/",
            ),
            *("https://[::1", "https://jobs.example:70000"),
        )
    ),
    ("NODE_NAME", "x" * 61, "at most 60 printable characters"),
    ("NODE_NAME", "a\tb", "at most 60 printable characters"),
    *(("CONTEXT_PATH", text, "does not begin with") for text in ("/api", "api/v2", "/health", "/metrics/")),
    *(
        ("CONTEXT_PATH", text, "a path such as")
        for text in ("a b", "/a//b", "/a?b", "/行", "http://x/", "/a/../b", "/.")
    ),
    ("METRICS_TOKEN", "x" * 15, "expected at least 16 characters"),
    ("METRICS_NETWORKS", "10.0.0.1/99", "expected networks such as 10.0.0.0/8"),
    ("ACCESS_TOKEN", "default_token", "expected at least 16 characters"),
    ("ACCESS_TOKEN", "x" * 15, "expected at least 16 characters"),
    ("ACCESS_TOKEN", f"{TOKEN},default_token", "expected at least 16 characters"),
    ("ACCESS_TOKEN", f"{TOKEN},", "expected at least 16 characters"),
    ("ACCESS_TOKEN", f"{TOKEN},{OTHER},{TOKEN}", "expected one token, or two"),
    ("ACCESS_TOKEN", "a token with some blanks", "printable ASCII"),
    ("ACCESS_TOKEN", "ein-schlüssel-mit-umlaut", "printable ASCII"),
    ("ACCESS_TOKEN", "a-token\nwith-a-line-end", "printable ASCII"),
    ("ADMIN_PASSWORD", "1234567", "8 to 128"),
    ("SECRET_KEY", "k" * 31, "expected at least 32 characters"),
    ("ADMIN_PASSWORD", "x" * 129, "8 to 128"),
    *(
        ("TIMEZONE", text, "IANA name")
        for text in (
            *("Mars/Olympus", "GMT+8", "../../etc/passwd", "/etc/localtime", "Asia"),
            *("localtime", "posixrules", "posix/Asia/Tokyo", "right/Asia/Tokyo"),  # schedules refuse them too
        )
    ),
    ("LANGUAGE", "fr", "one of zh_CN, zh_TW, en"),
    ("TRIGGER_TIMEOUT", "0", f"{WHOLE} 1 to 10"),
    ("TRIGGER_TIMEOUT", "11", f"{WHOLE} 1 to 10"),
    ("TRIGGERPOOL_FAST_MAX", "0", f"{WHOLE} 1 to 10000"),
    ("TRIGGERPOOL_SLOW_MAX", "10001", f"{WHOLE} 1 to 10000"),
    ("ADDRESS_INFLIGHT_MAX", "many", f"{WHOLE} 1 to 10000"),
    ("LOG_RETENTION_DAYS", "-1", f"{WHOLE} 0 to 36500"),
    ("SHARED_WITH_JAVA", "yes", "one of true, false"),
    ("EXECUTOR_NETWORKS", "10.0.0.0/33", "networks such as 10.0.0.0/8"),
    ("EXECUTOR_NETWORKS", "example.com", "networks such as 10.0.0.0/8"),
    ("EXECUTOR_NETWORKS", ",", "networks such as 10.0.0.0/8"),
    ("PROXY_COUNT", "11", f"{WHOLE} 0 to 10"),
    ("LOG_LEVEL", "loud", "one of DEBUG, INFO, WARNING, ERROR"),
    ("LOG_FORMAT", "xml", "one of text, json"),
    ("ACCESS_LOG", "on", "one of true, false"),
    ("SLOW_STATEMENT_MS", "0.5", f"{WHOLE} 0 to 600000"),
    ("THREADS", "3", f"{WHOLE} 4 to 512"),
    ("MAIL_PORT", "0", f"{WHOLE} 1 to 65535"),
    ("MAIL_SECURITY", "ssl", "one of starttls, tls, none"),
    ("MAIL_HOST", "smtp.example:25", "without port"),
    *(("MAIL_FROM", text, "expected an address such as") for text in ("jobs", "a b@x.example", "<a@b>, c@d")),
]


@truth_table("name, text, field, value", GOOD)
def test_valid_values(name: str, text: str, field: str, value: Any) -> None:
    assert getattr(read(**{name: text}), field) == value


@truth_table("name, text, reason", BAD)
def test_invalid_values_are_refused_in_one_line(name: str, text: str, reason: str) -> None:
    with pytest.raises(NotConfigured) as caught:
        read(**{name: text})
    message = str(caught.value)
    assert message.startswith(f"XXL_JOB_{name}")
    assert reason in message
    assert "\n" not in message
    secret = f"XXL_JOB_{name}" in SECRET_VARIABLES
    assert (repr(display_text(text)) in message) is not secret


def test_mysqlclient_is_accepted_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "mysql+mysqldb://u:p@h/d"
    monkeypatch.setitem(sys.modules, "MySQLdb", ModuleType("MySQLdb"))
    assert read(DATABASE_URL=url).database_url == f"{url}?charset=utf8mb4"
    monkeypatch.setitem(sys.modules, "MySQLdb", None)  # an import fails
    with pytest.raises(NotConfigured) as caught:
        read(DATABASE_URL=url)
    assert str(caught.value).startswith(
        "XXL_JOB_DATABASE_URL: mysql+mysqldb needs the Python package mysqlclient, which cannot be loaded ("
    )
    assert str(caught.value).endswith("); install it, or use mysql+pymysql")


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("", "ALL", "mode", "all"),
        ("_URL", "file:///srv/logs", "url", "file:///srv/logs"),
        ("_URL", "s3://bucket/a/b?region=eu", "url", "s3://bucket/a/b?region=eu"),
        ("_RUN_MB", "1", "run_mb", 1),
        ("_JOB_DAY_MB", "1024", "job_day_mb", 1024),
        ("_TOTAL_GB", "0", "total_gb", 0),
        ("_DAYS", "0", "days", 0),
        ("_REDACT", "password=\\S+", "redact", "password=\\S+"),
    ],
)
def test_settings_of_the_log_archive(name: str, text: str, attribute: str, value: object) -> None:
    assert getattr(read(**{f"LOG_ARCHIVE{name}": text}).archive, attribute) == value


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("", "some", "expected one of off, failed, all"),
        *(("_URL", text, "expected file:///folder") for text in ("/srv/logs", "file://srv/logs", "file:///")),
        *(("_URL", text, "s3://bucket/prefix") for text in ("s3:///prefix", "https://bucket.example")),
        ("_URL", "s3://bucket?endpoint=minio", "expected endpoint=http"),
        ("_URL", "s3://bucket?secret=secret-word", "expected endpoint, region, access_key or secret_key"),
        ("_URL", "s3://bucket?access_key=a", "expected access_key and secret_key"),
        ("_URL", "s3://key:secret-word@bucket", "expected keys as access_key and secret_key"),
        ("_URL", "s3://bucket?access_key=a&secret_key=a#secret-word", "expected # as %23"),
        *(("_URL", text, "in the name of a folder") for text in ("file:///srv/a?b", "file:///srv/a#")),
        ("_RUN_MB", "0", f"{WHOLE} 1 to 1024"),
        ("_REDACT", "(", "expected a regular expression"),
        ("_REDACT", "x*", "does not match an empty text"),
    ],
)
def test_a_wrong_setting_of_the_log_archive_is_refused(name: str, text: str, reason: str) -> None:
    with pytest.raises(NotConfigured, match=f"^XXL_JOB_LOG_ARCHIVE{name}[:=].*{re.escape(reason)}") as caught:
        read(**{f"LOG_ARCHIVE{name}": text})
    assert "secret-word" not in str(caught.value)


def test_every_setting_is_tested_above() -> None:
    names = {name.removeprefix("XXL_JOB_") for name in SETTINGS}
    mail = {name for name in names if name.startswith(("MAIL_", "OIDC_", "LOG_ARCHIVE"))}
    assert {name for name, *_ in GOOD} == names - mail
    free = {"ALARM_URLS"}  # checked by services.preconditions
    assert {name for name, *_ in BAD} == names - free - mail | {
        "MAIL_PORT",
        "MAIL_SECURITY",
        "MAIL_HOST",
        "MAIL_FROM",
    }


def test_mail_has_its_own_settings() -> None:
    mail = read(
        MAIL_HOST="smtp.example",
        MAIL_PORT="465",
        MAIL_USERNAME="u",
        MAIL_PASSWORD="word",
        MAIL_FROM="a@b.example",
        MAIL_SECURITY="TLS",
    ).mail
    assert (mail.host, mail.port, mail.username, mail.password, mail.sender, mail.security) == (
        "smtp.example",
        465,
        "u",
        "word",
        "a@b.example",
        "tls",
    )
    assert "word" not in repr(mail)


@truth_table(
    "settings, reason",
    [
        ({"MAIL_FROM": "a@b.example"}, "XXL_JOB_MAIL_FROM needs XXL_JOB_MAIL_HOST"),
        ({"MAIL_HOST": "smtp.example"}, "needs XXL_JOB_MAIL_FROM, the address of the sender$"),
        ({"MAIL_HOST": "smtp.example", "MAIL_USERNAME": "apikey"}, "the sender \\('apikey' is no address\\)"),
    ],
)
def test_mail_that_cannot_be_sent_is_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(NotConfigured, match=reason):
        read(**settings)
    assert read(MAIL_HOST="smtp.example", MAIL_USERNAME="jobs@example.com").mail.sender == ""


PROVIDER = {
    "OIDC_ISSUER": "https://id.example/realms/ops",
    "OIDC_CLIENT_ID": "xxl-job",
    "PUBLIC_URL": "https://jobs.example/xxl-job-admin",
}


def test_sign_on_has_its_own_settings() -> None:
    oidc = read(
        **PROVIDER,
        OIDC_CLIENT_SECRET="client-word",
        OIDC_SCOPES="openid, groups",
        OIDC_USERNAME_CLAIM="email",
        OIDC_GROUPS_CLAIM="realm_access.roles",
        OIDC_ADMIN_VALUES="job admins, root",
        OIDC_RIGHTS="payments-ops=payments:operate,edit; CN=viewers,DC=x=*:view",
        OIDC_LABEL="Example login",
    ).oidc
    assert oidc == OidcConfig(
        issuer="https://id.example/realms/ops",
        client_id="xxl-job",
        client_secret="client-word",
        scopes=("openid", "groups"),
        username_claim="email",
        groups_claim="realm_access.roles",
        admin_values=("job admins", "root"),
        rights=(
            Grant("payments-ops", "payments", frozenset({"operate", "edit"})),
            Grant("CN=viewers,DC=x", "*", frozenset({"view"})),
        ),
        label="Example login",
    )
    assert "client-word" not in repr(oidc)
    assert read(**PROVIDER, OIDC_FIRST_ADMIN="ann").oidc.first_admin == "ann"
    assert read().oidc.issuer == ""


@truth_table(
    "name, text, reason",
    [
        *(
            ("ISSUER", text, "expected https://HOST")
            for text in (
                "id.example",
                "http://id.example",
                "https://u:p@id.example",
                "https://id.example/?x=1",
                "https://",
                "http://localhost.example/",
                "https://[::1",
            )
        ),
        ("SCOPES", "profile email", "with openid among them"),
        *(("RIGHTS", text, "expected VALUE=APPNAME") for text in ("ops", "ops=view", "=x:view", "ops=:view")),
        ("RIGHTS", "ops=payments:root", "unknown right 'root'"),
        ("RIGHTS", "ops=payments:", "unknown right ''"),
    ],
)
def test_invalid_settings_of_the_sign_on_are_refused(name: str, text: str, reason: str) -> None:
    with pytest.raises(NotConfigured) as caught:
        read(**{**PROVIDER, f"OIDC_{name}": text})
    assert str(caught.value).startswith(f"XXL_JOB_OIDC_{name}=")
    assert reason in str(caught.value)


@truth_table(
    "changes, reason",
    [
        ({"OIDC_ISSUER": ""}, "XXL_JOB_OIDC_CLIENT_ID needs XXL_JOB_OIDC_ISSUER"),
        ({"OIDC_CLIENT_ID": ""}, "needs XXL_JOB_OIDC_CLIENT_ID"),
        ({"PUBLIC_URL": ""}, "needs XXL_JOB_PUBLIC_URL"),
        ({"PUBLIC_URL": "http://jobs.example"}, "needs XXL_JOB_PUBLIC_URL"),
        ({"OIDC_FIRST_ADMIN": "ann", "OIDC_ADMIN_VALUES": "root"}, "set one of them"),
    ],
)
def test_a_sign_on_that_cannot_work_is_refused(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(NotConfigured, match=reason):
        read(**{**PROVIDER, **changes})


def test_a_claim_can_grant_every_right() -> None:
    assert tuple(Right) == RIGHTS
    assert {field for field, _ in OIDC_SETTINGS.values()} == set(OidcConfig.__slots__)


def test_defaults_without_any_variable() -> None:
    config = Config.from_env({}, dotenv=None)
    assert (config.home, config.database_url) == (
        Path.cwd() / "instance",
        f"sqlite:///{Path.cwd()}/instance/xxl_job.db",
    )
    assert (config.host, config.port, config.context_path, config.language) == (
        "127.0.0.1",
        8080,
        "/xxl-job-admin",
        "zh_CN",
    )
    assert (config.trigger_timeout_s, config.fast_max, config.slow_max, config.address_inflight_max) == (
        3,
        200,
        100,
        32,
    )
    assert (
        config.log_retention_days,
        config.shared_with_java,
        config.access_tokens,
        config.admin_password,
    ) == (30, False, (), "")
    assert config.executor_networks == tuple(ip_network(text) for text in DEFAULT_NETWORKS.split(","))
    assert config.is_sqlite
    assert config.on_loopback


@truth_table("host, loopback", [("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.1", False)])
def test_what_counts_as_loopback(host: str, loopback: bool) -> None:
    assert read(HOST=host).on_loopback is loopback


@truth_table(
    "name, suggestion",
    [
        ("XXL_JOB_DATABASE_URI", "XXL_JOB_DATABASE_URL"),
        ("XXL_JOB_LOG_RETENTIONDAYS", "XXL_JOB_LOG_"),
        ("XXL_JOB_TRIGGERPOOL_FAST", "XXL_JOB_TRIGGERPOOL_FAST_MAX"),
        ("XXL_JOB_PORTS", "XXL_JOB_PORT"),
        ("XXL_JOB_ALARM_URL", "XXL_JOB_ALARM_URLS"),
    ],
)
def test_an_unknown_name_is_refused_with_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(NotConfigured) as caught:
        Config.from_env({name: "x"}, dotenv=None)
    message = str(caught.value)
    assert message.startswith(f"{name} is not a known setting")
    assert f"did you mean {suggestion}" in message
    assert "docs/configuration.md" in message


def test_variables_of_other_programs_are_ignored() -> None:
    client_only = set(VARIABLES) - set(SETTINGS) - {"XXL_JOB_ACCESS_TOKEN_FILE"}
    assert client_only == CLIENT_VARIABLES
    others = client_only | CLI_VARIABLES
    assert {profiles.URL, profiles.TOKEN, profiles.TOKEN_FILE, profiles.PROFILE} == CLI_VARIABLES
    assert (
        Config.from_env(
            {
                "PATH": "/bin",
                "XXL_JOBS": "x",
                "xxl_job_port": "1",
                **dict.fromkeys(others, "x"),
            },
            dotenv=None,
        ).port
        == 8080
    )


def test_variables_that_kubernetes_derives_from_a_service_are_ignored() -> None:
    derived = {
        "XXL_JOB_SERVICE_HOST": "10.0.0.7",
        "XXL_JOB_SERVICE_PORT": "8080",
        "XXL_JOB_SERVICE_PORT_HTTP": "8080",
        "XXL_JOB_PORT": "tcp://10.0.0.7:8080",
        "XXL_JOB_PORT_8080_TCP": "tcp://10.0.0.7:8080",
        "XXL_JOB_PORT_8080_TCP_PROTO": "tcp",
        "XXL_JOB_PORT_8080_TCP_PORT": "8080",
        "XXL_JOB_PORT_8080_TCP_ADDR": "10.0.0.7",
    }
    derived |= {name.replace("XXL_JOB_", "XXL_JOB_ADMIN_"): text for name, text in derived.items()}
    config = Config.from_env({**derived, "XXL_JOB_MAIL_HOST": "m", "XXL_JOB_MAIL_FROM": "a@m"}, dotenv=None)
    assert (config.port, config.host) == (8080, "127.0.0.1")
    with pytest.raises(NotConfigured, match="XXL_JOB_ADMIN_PORT is not a known setting"):
        Config.from_env({"XXL_JOB_ADMIN_PORT": "8080"}, dotenv=None)


def test_an_empty_value_counts_as_unset() -> None:
    assert read(PORT="", ACCESS_TOKEN="  ", TIMEZONE=" ").port == 8080


def test_secrets_are_not_shown() -> None:
    config = read(
        ACCESS_TOKEN=TOKEN,
        ADMIN_PASSWORD="a-password",
        SECRET_KEY="the-key-of-the-application-itself",
        DATABASE_URL="mysql+pymysql://u:database-secret@h/d",
        ALARM_URLS="json://channel-secret@h",
        HOME="/srv/xxl-job",
    )
    for secret in (TOKEN, "a-password", "the-key-of", "database-secret", "channel-secret"):
        assert secret not in repr(config)


@truth_table(
    "name, value",
    [
        ("PUBLIC_URL", "https://user:secret-word@host/"),
        ("OIDC_ISSUER", "http://user:a/secret-word@b@host"),
        ("MAIL_HOST", "smtp://user:secret-word@host:25"),
        ("SECRET_KEY_FILE", "secret-word"),
        ("SECRET_KEY_FILE", "/secret-word"),
        ("ACCESS_TOKEN_FILE", "/secret-word/with/slashes"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(name: str, value: str) -> None:
    with pytest.raises(NotConfigured, match=f"XXL_JOB_{name}") as caught:
        Config.from_env({f"XXL_JOB_{name}": value}, dotenv=None)
    assert "secret-word" not in str(caught.value)


def test_a_dotenv_file(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text(
        "# a comment\n\nXXL_JOB_PORT=9090\nexport XXL_JOB_HOST='0.0.0.0'\n"
        'XXL_JOB_LANGUAGE = "en"\nOTHER=x\n'
    )
    config = Config.from_env({"XXL_JOB_PORT": "7070"}, dotenv=dotenv)
    assert (config.port, config.host, config.language) == (7070, "0.0.0.0", "en")
    assert Config.from_env({}, dotenv=tmp_path / "missing").port == 8080


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("XXL_JOB_PORT", "line 1: expected NAME=value"),
        ("XXL_JOB_PROT=1", "XXL_JOB_PROT is not a known setting"),
    ],
)
def test_an_invalid_dotenv_file(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / ".env").write_text(line)
    with pytest.raises(NotConfigured, match=reason):
        Config.from_env({}, dotenv=tmp_path / ".env")


def test_an_invalid_dotenv_line_is_not_shown_whole(tmp_path: Path) -> None:
    """Without its equals sign, the line may contain a secret."""
    (tmp_path / ".env").write_text("XXL_JOB_ACCESS_TOKEN secret-word")
    with pytest.raises(NotConfigured) as caught:
        Config.from_env({}, dotenv=tmp_path / ".env")
    assert "secret-word" not in str(caught.value)


def test_the_system_time_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    link, name = tmp_path / "localtime", tmp_path / "timezone"
    assert system_zone(link, name) == "UTC"
    name.write_text("Europe/Berlin\n")
    assert system_zone(link, name) == "Europe/Berlin"
    link.symlink_to("/usr/share/zoneinfo/posix/Asia/Tokyo")
    assert system_zone(link, name) == "Asia/Tokyo"
    link.unlink()
    link.symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert system_zone(link, name) == "Asia/Tokyo"
    monkeypatch.setenv("TZ", ":America/New_York")
    assert system_zone(link, name) == "America/New_York"
    monkeypatch.setenv("TZ", ":/usr/share/zoneinfo/America/New_York")
    assert system_zone(link, name) == "America/New_York"
    monkeypatch.setenv("TZ", "nonsense")
    assert system_zone(link, name) == "Asia/Tokyo"


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_secret_can_be_in_a_file(tmp_path: Path) -> None:
    config = read(
        ACCESS_TOKEN_FILE=write(tmp_path, "token", f"\ufeff{TOKEN}\r\n"),
        DATABASE_URL_FILE=write(tmp_path, "url", "postgresql+psycopg://u:p@h/d\r\n"),
        ALARM_URLS_FILE=write(tmp_path, "urls", "json://a\njson://b\n"),
    )
    assert config.access_tokens == (TOKEN,)
    assert config.database_url == "postgresql+psycopg://u:p@h/d"
    assert config.alarm_urls == ("json://a", "json://b")
    assert config.sources["XXL_JOB_ACCESS_TOKEN"] == str(tmp_path / "token")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"SECRET_KEY_FILE": "absent"},
            "XXL_JOB_SECRET_KEY_FILE={}/absent: the file cannot be read: No such",
        ),
        ({"SECRET_KEY_FILE": "."}, "XXL_JOB_SECRET_KEY_FILE={}/.: the file cannot be read: Is a directory"),
        (
            {"SECRET_KEY_FILE": "bytes"},
            "XXL_JOB_SECRET_KEY_FILE={}/bytes: the file cannot be read: expected UTF",
        ),
        ({"SECRET_KEY_FILE": "empty"}, "XXL_JOB_SECRET_KEY_FILE={}/empty: the file is empty"),
        ({"SECRET_KEY_FILE": "short"}, "XXL_JOB_SECRET_KEY ({}/short): expected at least 32 characters"),
        (
            {"SECRET_KEY_FILE": "short", "SECRET_KEY": "k" * 32},
            "XXL_JOB_SECRET_KEY (environment) and XXL_JOB_SECRET_KEY_FILE (environment) are both set",
        ),
        ({"PORT_FILE": "short"}, "XXL_JOB_PORT_FILE is not a known setting (did you mean"),
    ],
)
def test_a_secret_in_a_file_that_is_no_good_is_one_line(
    tmp_path: Path, settings: dict[str, str], reason: str
) -> None:
    write(tmp_path, "empty", " \n")
    write(tmp_path, "short", "secret-word\n")
    (tmp_path / "bytes").write_bytes(b"\xff")
    files = {
        name: f"{tmp_path}/{text}" if name.endswith("_FILE") else text for name, text in settings.items()
    }
    with pytest.raises(NotConfigured) as caught:
        read(**files)
    assert str(caught.value).startswith(reason.format(tmp_path))
    assert "secret-word" not in str(caught.value)


def test_the_environment_wins_over_the_file_of_the_services(tmp_path: Path) -> None:
    dotenv, env_file = tmp_path / ".env", tmp_path / "xxl-job.env"
    dotenv.write_text("XXL_JOB_PORT=1\nXXL_JOB_HOST=::\nXXL_JOB_THREADS=8\n")
    env_file.write_text("XXL_JOB_PORT=2\nXXL_JOB_HOST=::1\n")
    config = Config.from_env({"XXL_JOB_PORT": "3"}, dotenv=dotenv, env_file=env_file)
    assert (config.port, config.host, config.threads) == (3, "::1", 8)
    assert config.sources == {
        "XXL_JOB_PORT": "environment",
        "XXL_JOB_HOST": str(env_file),
        "XXL_JOB_THREADS": str(dotenv),
    }


def test_every_setting_is_documented_once() -> None:
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`XXL_JOB_[^|]*) \|", text, re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`(XXL_JOB_\w+)`", row)]
    assert sorted(documented) == sorted(SETTINGS)
    in_files = set(
        re.findall(r"`(XXL_JOB_\w+)`", text.partition("**Secrets in files.**")[2].partition("\n\n")[0])
    )
    assert in_files >= SECRET_VARIABLES
