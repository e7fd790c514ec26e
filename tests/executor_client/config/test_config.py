"""Executor configuration: parsing, defaults, errors of one line."""

from pathlib import Path
from typing import Any

import pytest

from executor_client import ExecutorConfig, StartRefused
from tests.support.truth_table import truth_table

GOOD: dict[str, Any] = {"admin_addresses": ("http://127.0.0.1:8080/xxl-job-admin",), "appname": "test"}
TOKEN = "a-token-0123456789"


def test_every_variable_is_read(tmp_path: Path) -> None:
    config = ExecutorConfig.from_env(
        {
            "XXL_JOB_ADMIN_ADDRESSES": " http://a:1/x , ,http://b:2 ",
            "XXL_JOB_EXECUTOR_APPNAME": "app",
            "XXL_JOB_EXECUTOR_HOST": "0.0.0.0",
            "XXL_JOB_EXECUTOR_PORT": "9998",
            "XXL_JOB_EXECUTOR_ADDRESS": "http://h:1",
            "XXL_JOB_EXECUTOR_LOG_PATH": str(tmp_path / "logs"),
            "XXL_JOB_EXECUTOR_LOG_RETENTION_DAYS": "7",
            "XXL_JOB_EXECUTOR_ALLOW_GLUE": "Python, shell",
            "XXL_JOB_EXECUTOR_SCRIPT_CPU_SECONDS": "60",
            "XXL_JOB_EXECUTOR_SCRIPT_MEMORY_MB": "512",
            "XXL_JOB_EXECUTOR_SCRIPT_FILE_MB": "0",
            "XXL_JOB_EXECUTOR_SCRIPT_PROCESSES": "500",
            "XXL_JOB_EXECUTOR_SCRIPT_OPEN_FILES": "256",
            "XXL_JOB_ACCESS_TOKEN": f"{TOKEN},{TOKEN}2",
            "XXL_JOB_HOME": str(tmp_path),
        }
    )
    assert config == ExecutorConfig(
        admin_addresses=("http://a:1/x", "http://b:2"),
        appname="app",
        host="0.0.0.0",
        port=9998,
        address="http://h:1",
        log_path=tmp_path / "logs",
        log_retention_days=7,
        allow_glue=frozenset({"python", "shell"}),
        script_cpu_s=60,
        script_memory_mb=512,
        script_file_mb=0,
        script_processes=500,
        script_open_files=256,
        access_tokens=(TOKEN, TOKEN + "2"),
        home=tmp_path,
    )
    config.check()
    assert TOKEN not in repr(config)


def test_defaults_are_the_documented_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = ExecutorConfig.from_env({}, appname="my app/1")
    assert (config.host, config.listen_port, config.home, config.access_tokens) == (
        "127.0.0.1",
        9999,
        Path("instance"),
        (),
    )
    assert config.log_root == Path("instance/executor-logs")
    assert config.journal_path == Path("instance/executor-my_app_1-aac66c27-9999.sqlite3")


def test_each_app_name_has_a_journal_of_its_own() -> None:
    names = ("shop", "my_app", "my app", "my/app", "订单", "支付")
    paths = {ExecutorConfig.from_env({}, appname=name).journal_path.name for name in names}
    assert len(paths) == len(names)
    assert {"executor-shop-9999.sqlite3", "executor-my_app-9999.sqlite3"} <= paths


def test_the_token_of_a_local_console_is_found(tmp_path: Path) -> None:
    (tmp_path / "access_token").write_text(TOKEN + "\n")
    assert ExecutorConfig.from_env({"XXL_JOB_HOME": str(tmp_path)}).access_tokens == (TOKEN,)
    environ = {"XXL_JOB_HOME": str(tmp_path), "XXL_JOB_ACCESS_TOKEN": "another-0123456789"}
    assert ExecutorConfig.from_env(environ).access_tokens == ("another-0123456789",)


def test_a_keyword_overrides_the_variable() -> None:
    assert ExecutorConfig.from_env({"XXL_JOB_EXECUTOR_PORT": "nonsense"}, port=1234).port == 1234


@truth_table(
    "variable, value, expected",
    [
        ("XXL_JOB_EXECUTOR_PORT", "99999", "is not a port"),
        ("XXL_JOB_EXECUTOR_PORT", "-1", "is not a port"),
        ("XXL_JOB_EXECUTOR_PORT", "²", "is not a port"),
        ("XXL_JOB_EXECUTOR_LOG_RETENTION_DAYS", "x", "is not a number of days"),
        ("XXL_JOB_EXECUTOR_SCRIPT_CPU_SECONDS", "-1", "is not a limit"),
        ("XXL_JOB_EXECUTOR_SCRIPT_FILE_MB", "10G", "is not a limit"),
    ],
)
def test_an_invalid_variable_is_named(variable: str, value: str, expected: str) -> None:
    with pytest.raises(StartRefused, match=f"^{variable}: .*{expected}"):
        ExecutorConfig.from_env({variable: value})


@truth_table(
    "settings, expected",
    [
        ({"appname": " "}, "no app name"),
        ({"admin_addresses": ()}, "no admin address"),
        ({"admin_addresses": ("localhost:8080",)}, "is not a URL"),
        ({"admin_addresses": ("http://h:x",)}, "is not a URL"),
        ({"admin_addresses": ("htp://ann:secret@h/x",)}, "^'htp://h/x' is not a URL"),
        ({"address": "10.1.2.3:9999"}, "is not a URL"),
        ({"allow_glue": frozenset({"python", "groovy"})}, "groovy is not one of"),
        ({"port": 65_536}, "^port: 65536 is not a port"),
        ({"port": -1}, "^port: -1 is not a port"),
        ({"access_tokens": ("ключ-доступа-12345",)}, "access token: expected printable"),
        ({"access_tokens": (TOKEN, "with\nlines-0123456789")}, "access token: expected printable"),
        ({"host": "0.0.0.0"}, "no access token is set"),
        ({"address": "http://10.1.2.3:9999"}, "no access token is set"),
        ({"host": "10.1.2.3", "access_tokens": ("default_token",)}, "known default or shorter"),
        ({"host": "10.1.2.3", "access_tokens": ("short",)}, "known default or shorter"),
        ({"host": "10.1.2.3", "access_tokens": (TOKEN, "short")}, "known default or shorter"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(StartRefused, match=expected) as refused:
        ExecutorConfig(**{**GOOD, **settings}).check()
    assert "\n" not in str(refused.value)


@truth_table(
    "settings", [{}, {"access_tokens": ("default_token",)}, {"host": "0.0.0.0", "access_tokens": (TOKEN,)}]
)
def test_valid_settings_are_accepted(settings: dict[str, Any]) -> None:
    ExecutorConfig(**{**GOOD, **settings}).check()
