"""Settings of an executor: one table of variables and options, and typos that are refused."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from executor_client import ExecutorConfig, StartRefused
from executor_client.__main__ import make_parser
from executor_client.config.config import Timing
from executor_client.config.settings import FOREIGN, SETTINGS
from executor_client.program.serving import settings_of
from tests.executor_client.process import command
from tests.support.truth_table import truth_table

#: a value for each setting that takes one, and what it becomes
VALUES = {
    "admin_addresses": ("http://a:1/x,http://b:2", ("http://a:1/x", "http://b:2")),
    "appname": ("my-app", "my-app"),
    "host": ("10.1.2.3", "10.1.2.3"),
    "port": ("9998", 9998),
    "address": ("http://h:1/", "http://h:1/"),
    "home": ("/data", Path("/data")),
    "log_path": ("/logs", Path("/logs")),
    "log_retention_days": ("7", 7),
    "log_level": ("DEBUG", "debug"),
    "timing.shutdown_wait_s": ("600", 600.0),
    "allow_glue": ("python,Shell", frozenset({"python", "shell"})),
    "script_cpu_s": ("60", 60),
    "script_memory_mb": ("512", 512),
    "script_file_mb": ("0", 0),
    "script_processes": ("500", 500),
    "script_open_files": ("256", 256),
}
SWITCHES = ("route_logging", "capture_output", "metrics")


def value_of(config: ExecutorConfig, field: str) -> Any:
    first, _, rest = field.partition(".")
    value = getattr(config, first)
    return getattr(value, rest) if rest else value


def parsed(*arguments: str) -> argparse.Namespace:
    return make_parser().parse_intermixed_args(arguments)


@truth_table("field", VALUES)
def test_a_setting_is_variable_option_and_keyword_argument(field: str) -> None:
    (setting,) = (each for each in SETTINGS if each.field == field)
    text, expected = VALUES[field]
    by_variable = ExecutorConfig.from_env({setting.variable: text})
    by_option = ExecutorConfig.from_env({}, **settings_of(parsed(setting.option, text)))
    by_keyword = ExecutorConfig.from_env({}, **{field: text})
    assert value_of(by_variable, field) == expected != value_of(ExecutorConfig(), field)
    assert by_variable == by_option == by_keyword


@truth_table("field", SWITCHES)
def test_a_switch_is_set_either_way(field: str) -> None:
    (setting,) = (each for each in SETTINGS if each.field == field)
    for text, option, expected in (("on", setting.option, True), ("0", f"--no-{setting.option[2:]}", False)):
        assert value_of(ExecutorConfig.from_env({setting.variable: text}), field) is expected
        assert settings_of(parsed(option)) == {field: expected}


def test_every_field_is_in_the_table() -> None:
    in_table = {setting.field for setting in SETTINGS}
    assert in_table == {*VALUES, *SWITCHES, "access_tokens"}
    assert {each.name for each in fields(ExecutorConfig)} - in_table == {"timing"}


@truth_table(
    "variable, expected",
    [
        ("XXL_JOB_EXECUTOR_APP_NAME", "did you mean XXL_JOB_EXECUTOR_APPNAME?"),
        ("XXL_JOB_EXECUTOR_LOGPATH", "did you mean XXL_JOB_EXECUTOR_LOG_PATH?"),
        ("XXL_JOB_EXECUTOR_LOGRETENTIONDAYS", "did you mean XXL_JOB_EXECUTOR_LOG_RETENTION_DAYS?"),
        ("XXL_JOB_EXECUTOR_PROT", "did you mean XXL_JOB_EXECUTOR_PORT?"),
        ("XXL_JOB_EXECUTOR_", "known are XXL_JOB_EXECUTOR_ADDRESS, "),
        ("XXL_JOB_EXECUTOR_IP", "known are XXL_JOB_EXECUTOR_ADDRESS, "),
    ],
)
def test_a_mistyped_variable_is_refused(variable: str, expected: str) -> None:
    with pytest.raises(StartRefused, match=f"^{variable}: no such setting; ") as refused:
        ExecutorConfig.from_env({variable: "x"})
    assert expected in str(refused.value)


@truth_table(
    "variable, expected",
    [
        ("XXL_JOB_ADMIN_ADDRESS", "XXL_JOB_ADMIN_ADDRESSES"),
        ("XXL_JOB_ACESS_TOKEN", "XXL_JOB_ACCESS_TOKEN"),
        ("XXL_JOB_ACCESSTOKEN_FILE", "XXL_JOB_ACCESS_TOKEN_FILE"),
    ],
)
def test_a_mistyped_variable_without_the_prefix_is_refused(variable: str, expected: str) -> None:
    with pytest.raises(StartRefused, match=f"^{variable}: no such setting; did you mean {expected}\\?$"):
        ExecutorConfig.from_env({variable: "x"})


def test_variables_of_other_programs_are_ignored() -> None:
    of_kubernetes = {
        "XXL_JOB_EXECUTOR_SERVICE_HOST": "10.0.0.7",
        "XXL_JOB_EXECUTOR_SERVICE_PORT": "80",
        "XXL_JOB_EXECUTOR_SERVICE_PORT_HTTP": "80",
        "XXL_JOB_EXECUTOR_PORT": "tcp://10.0.0.7:80",
        "XXL_JOB_EXECUTOR_PORT_80_TCP_ADDR": "10.0.0.7",
        "XXL_JOB_EXECUTOR_SAMPLE_PORT": "tcp://10.0.0.8:80",
        "XXL_JOB_EXECUTOR_SAMPLE_SERVICE_HOST": "10.0.0.8",
    }
    others = {**dict.fromkeys(FOREIGN, "x"), "XXL_JOB_PORT": "x", "XXL_JOB_TOKEN": "x", "OTHER": "x"}
    assert ExecutorConfig.from_env({**of_kubernetes, **others}) == ExecutorConfig.from_env({})


@truth_table(
    "settings, expected",
    [
        ({"app_name": "x"}, "app_name: no such setting; did you mean appname?"),
        ({"adress": "x"}, "adress: no such setting; did you mean address?"),
        ({"xyz": "x"}, "xyz: no such setting; known are access_tokens, address, admin_addresses, "),
        ({"port": "99999"}, "port: '99999' is not a port"),
        ({"log_level": "loud"}, "log_level: 'loud' is not one of debug, info, warning, error"),
        ({"metrics": "maybe"}, "metrics: 'maybe' is neither on nor off"),
        ({"timing.shutdown_wait_s": "1d"}, "timing.shutdown_wait_s: '1d' is not a number of seconds"),
    ],
)
def test_an_invalid_keyword_argument_is_refused(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(StartRefused) as refused:
        ExecutorConfig.from_env({}, **settings)
    assert expected in str(refused.value)


def test_a_keyword_argument_overrides_one_field_of_the_timing() -> None:
    environ = {"XXL_JOB_EXECUTOR_SHUTDOWN_WAIT_SECONDS": "600"}
    assert ExecutorConfig.from_env(environ, timing=Timing(drain_s=9)).timing == Timing(drain_s=9)
    assert ExecutorConfig.from_env(environ).timing == Timing(shutdown_wait_s=600)


def test_the_command_line_refuses_typos_and_names_its_commands(tmp_path: Path) -> None:
    refused = command(tmp_path, "check", XXL_JOB_EXECUTOR_APP_NAME="a")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "executor_client: XXL_JOB_EXECUTOR_APP_NAME: no such setting;"
        " did you mean XXL_JOB_EXECUTOR_APPNAME?\n"
    )
    shown = command(tmp_path, "--help").stdout
    assert "usage: python -m executor_client [" in shown
    assert "  check   " in shown
    assert "[XXL_JOB_EXECUTOR_LOG_LEVEL]" in shown
