"""Commands ``serve`` and ``check``: run handlers, or check what a start needs."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from executor_client.config.config import ExecutorConfig
from executor_client.config.settings import SETTINGS, Setting
from executor_client.config.terminal import write_line
from executor_client.executor import Executor
from executor_client.handlers.registry import registry
from executor_client.program.check import Finding, check
from executor_client.program.importing import import_handlers
from executor_client.wire.errors import StartRefused


class Command(NamedTuple):
    """Command of the command line."""

    #: one line for the list of commands
    summary: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    #: returns the exit code; raises StartRefused
    run: Callable[[argparse.Namespace], int]


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting; ``settings_of`` returns their values."""
    for setting in SETTINGS:
        if not setting.option:
            continue
        text = f"{setting.help} [{setting.variable}]"
        if setting.metavar:
            parser.add_argument(
                setting.option,
                dest=setting.field,
                type=_argument(setting),
                metavar=setting.metavar,
                help=text,
            )
        else:
            action = argparse.BooleanOptionalAction
            parser.add_argument(setting.option, dest=setting.field, action=action, default=None, help=text)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of ExecutorConfig that options set."""
    values = vars(options)
    names = [setting.field for setting in SETTINGS]
    return {name: values[name] for name in names if values.get(name) is not None}


def _argument(setting: Setting) -> Callable[[str], Any]:
    """Return the setting's parser, with an error message that argparse shows."""

    def read(text: str) -> Any:
        try:
            return setting.parse(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return read


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="modules with handlers, for example myapp.jobs"
    )
    add_settings(parser)


def _serve(options: argparse.Namespace) -> int:
    if options.modules[:1] == ["check"]:  # after an option: ``--admin URL check MODULE``
        options.modules = options.modules[1:]
        return _check(options)
    executor = Executor.from_env(**settings_of(options))
    import_handlers(options.modules)
    registry.require_bound()
    if not registry.names() and not executor.config.allow_glue:
        raise StartRefused("no handler: name a module that has @job functions, for example myapp.jobs")
    executor.run()
    return 0


def _check(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    config, prefix = ExecutorConfig.from_env(**settings), None
    handlers: list[Finding] = []
    if options.modules:
        finding, mounted_executor = _check_handlers(options.modules)
        handlers.append(finding)
        if mounted_executor is not None:
            mounted_config, prefix = mounted_executor.config, mounted_executor.mount_prefix
            listen_settings = {
                name: getattr(mounted_config, name)
                for name in ("host", "port", "address")
                if name not in settings
            }
            config = replace(config, **listen_settings)
    findings = [*check(config, prefix), *handlers]
    for finding in findings:
        write_line(sys.stdout, f"{'ok     ' if finding.is_fine else 'PROBLEM'} {finding.text}")
    return 0 if all(finding.is_fine for finding in findings) else 1


def _check_handlers(modules: Sequence[str]) -> tuple[Finding, Executor | None]:
    """Import modules; return a finding about their handlers, and the executor that they mount."""
    mounted_executor = None
    try:
        mounted_executor = next(
            (executor for executor in import_handlers(modules) if executor.mount_prefix is not None), None
        )
        registry.require_bound()
    except StartRefused as exc:
        return Finding(False, f"handlers: {exc}"), mounted_executor
    names = ", ".join(registry.names())
    return Finding(bool(names), f"handlers: {names or 'none in ' + ', '.join(modules)}"), mounted_executor


_TOKEN = (
    "Options override the variables in brackets. The token is never an option: set XXL_JOB_ACCESS_TOKEN,\n"
    "use --token-file, or share XXL_JOB_HOME with the console."
)
SERVE = Command(
    "serve handlers until SIGTERM or Ctrl-C (the default)",
    f"Serve @job handlers to an XXL-JOB admin.\n{_TOKEN}",
    _add_arguments,
    _serve,
)
CHECK = Command(
    "check settings, admin, token, group, address, port, folders and modules without starting",
    f"Check what a start needs, without changing anything; exit code 1 if there is a problem.\n{_TOKEN}",
    _add_arguments,
    _check,
)
