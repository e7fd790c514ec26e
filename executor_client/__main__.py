"""Command line: ``python -m executor_client MODULE… --admin URL --appname NAME`` serves handlers.

``python -m executor_client check [MODULE…] …`` checks the same settings and modules without starting.
"""

import argparse
import importlib
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from executor_client.check import Finding, check
from executor_client.config import ExecutorConfig, parse_languages, parse_port, read_token_file, split_list
from executor_client.errors import StartRefused
from executor_client.executor import Executor, for_handlers_only
from executor_client.handlers import registry
from executor_client.run import describe


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with one line instead of the whole usage."""
        self.exit(2, f"{self.prog}: {message} (--help lists the options)\n")


def _argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap a parser so that argparse shows its error message."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc

    return read


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m executor_client",
        description="Serve @job handlers to an XXL-JOB admin. Options override the environment variables"
        " listed in docs/executor.md.",
        epilog="The token is never an option: set XXL_JOB_ACCESS_TOKEN, use --token-file, or share"
        " XXL_JOB_HOME with the console.",
    )
    parser.add_argument(
        "modules",
        nargs="*",
        metavar="MODULE",
        help="modules with handlers, for example myapp.jobs; put 'check' first to check without starting",
    )
    parser.add_argument(
        "--admin",
        dest="admin_addresses",
        type=split_list,
        metavar="URL[,URL]",
        help="http://host:port/xxl-job-admin",
    )
    parser.add_argument("--appname", help="name of the executor group")
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=_argument(parse_port), help="port to listen on (default 9999)")
    parser.add_argument("--address", metavar="URL", help="URL to register (default http://host:port/)")
    parser.add_argument(
        "--log-path",
        dest="log_path",
        type=Path,
        metavar="DIR",
        help="folder of the job logs (default executor-logs in the home)",
    )
    parser.add_argument(
        "--allow-glue",
        type=parse_languages,
        metavar="LANG[,LANG]",
        help="script languages to allow: python, shell, php, nodejs, powershell",
    )
    parser.add_argument(
        "--home", type=Path, metavar="DIR", help="folder of the journal and the token file (default instance)"
    )
    parser.add_argument(
        "--token-file",
        dest="access_tokens",
        type=lambda text: read_token_file(Path(text)),
        metavar="FILE",
        help="file that holds the access token",
    )
    parser.add_argument("--metrics", action="store_true", default=None, help="serve GET /metrics")
    return parser


def _import_handlers(modules: Sequence[str]) -> None:
    sys.path.insert(0, str(Path.cwd()))
    for name in modules:
        try:
            with for_handlers_only():
                importlib.import_module(name)
        except StartRefused:
            raise
        except (Exception, SystemExit) as exc:
            raise StartRefused(f"cannot import {name}: {describe(exc)}") from exc


def _serve(modules: Sequence[str], settings: dict[str, Any]) -> int:
    executor = Executor.from_env(**settings)
    _import_handlers(modules)
    registry.require_bound()
    if not registry.names() and not executor.config.allow_glue:
        raise StartRefused("no handler: name a module that has @job functions, for example myapp.jobs")
    executor.run()
    return 0


def _check(modules: Sequence[str], settings: dict[str, Any]) -> int:
    findings = list(check(ExecutorConfig.from_env(**settings)))
    if modules:
        findings.append(_check_handlers(modules))
    for finding in findings:
        print("ok     " if finding.is_fine else "PROBLEM", finding.text)
    return 0 if all(finding.is_fine for finding in findings) else 1


def _check_handlers(modules: Sequence[str]) -> Finding:
    try:
        _import_handlers(modules)
        registry.require_bound()
    except StartRefused as exc:
        return Finding(False, f"handlers: {exc}")
    return Finding(
        bool(registry.names()), f"handlers: {', '.join(registry.names()) or 'none in ' + ', '.join(modules)}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    logging.getLogger("waitress").setLevel(logging.ERROR)
    try:
        options = vars(_parser().parse_intermixed_args(arguments))
        modules = options.pop("modules")
        settings = {name: value for name, value in options.items() if value is not None}
        return _check(modules[1:], settings) if modules[:1] == ["check"] else _serve(modules, settings)
    except StartRefused as exc:
        print(f"executor_client: {exc}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
