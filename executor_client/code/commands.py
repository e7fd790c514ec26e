"""Commands ``plan`` and ``apply``: sync the jobs that handlers declare to a console."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from executor_client.api.client import ApiClient
from executor_client.api.credentials import find_credentials
from executor_client.api.error_messages import EXIT_FAILED, EXIT_USAGE, explain
from executor_client.api.errors import ApiError, InvalidRequest
from executor_client.api.profiles import TOKEN_FILE, URL, read_token
from executor_client.api.session import Item
from executor_client.code.declared_jobs import DeclaredJobs
from executor_client.code.git_source import source_of
from executor_client.code.plan_text import plan_lines, summary_line, without_colours
from executor_client.code.source_locations import InvalidCode
from executor_client.config.program_name import program_name
from executor_client.config.terminal import is_terminal, read_line, write_line
from executor_client.handlers.registry import Handler, registry
from executor_client.program.importing import import_handlers
from executor_client.program.serving import Command
from executor_client.wire.errors import StartRefused

ADMINS = "XXL_JOB_ADMIN_ADDRESSES"
APPNAME = "XXL_JOB_EXECUTOR_APPNAME"
#: timeout of the answer in seconds: the console checks thousands of jobs in one request
ANSWER_S = 300.0


@dataclass(frozen=True)
class _CodeRequest:
    """Request to the console: the jobs that handlers declare, and the jobs to delete."""

    client: ApiClient
    jobs: DeclaredJobs
    document: Item
    #: keys of jobs to delete
    prune: Sequence[str]

    def post(self, path: str, **more: object) -> Item:
        """Send the document; errors of its values name handlers and arguments."""
        body = {"document": self.document, "prune": list(self.prune), **more}
        try:
            return self.client.post(path, body, timeout_s=ANSWER_S)
        except InvalidRequest as exc:
            if not exc.fields:
                raise
            raise InvalidCode(self.jobs.error(error) for error in exc.fields) from exc


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("modules", nargs="*", metavar="MODULE", help="modules with handlers: myapp.jobs, or a file jobs.py")
    add("--admin", metavar="URL", default="", help=f"address of the console [{URL}, else {ADMINS}]")
    add("--token-file", metavar="FILE", type=Path, help=f"file with an API token [{TOKEN_FILE}]")
    add("--profile", metavar="NAME", default="", help="console and token of a login with duetime")
    add("--appname", metavar="NAME", default="", help=f"AppName of the executor group [{APPNAME}]")
    add("--create-group", action="store_true", help="make the executor group if it does not exist")
    add("--prune", metavar="NAME", action="append", default=[], help="delete this job, no longer declared")
    add("-o", "--output", choices=("text", "json"), default="text", help="form of the plan")


def _add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser)
    parser.add_argument("--exit-code", action="store_true", help="end with 1 if there is something to do")


def _add_apply_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="apply without asking")
    parser.add_argument(
        "--source", metavar="TEXT", default="", help="where the code comes from; default: its commit"
    )


def _plan(options: argparse.Namespace) -> int:
    return _run(options, _show)


def _apply(options: argparse.Namespace) -> int:
    return _run(options, _make)


def _show(request: _CodeRequest, options: argparse.Namespace) -> int:
    plan = request.post("/code/plan")
    _print(plan, options)
    return EXIT_FAILED if options.exit_code and plan["objects"] else 0


def _make(request: _CodeRequest, options: argparse.Namespace) -> int:
    plan = request.post("/code/plan")
    if options.output == "text":
        _print(plan, options)
    if plan["objects"] and not options.yes:
        _confirm(summary_line(plan))
    result: Item = {"apply_id": None, "plan": plan}
    if plan["objects"]:  # otherwise no schedule has to wait for another plan
        source = options.source or source_of(Path.cwd())
        result = request.post("/code/apply", source=source, plan_hash=plan["plan_hash"])
    if options.output == "json":
        _print(result, options)
    elif result["apply_id"] is not None:
        address = f"{URL}={request.client.address} " if _address(options) else ""
        _write(f"Applied. To take it back: {address}{program_name()} undo {result['apply_id']}")
    return 0


def _run(options: argparse.Namespace, act: Callable[[_CodeRequest, argparse.Namespace], int]) -> int:
    """Run a command on the declared jobs and return its exit code; each error is one line."""
    try:
        handlers = _handlers(options.modules, may_be_none=bool(options.prune))
        credentials = find_credentials(_address(options), _token(options), options.profile, os.environ)
        with closing(ApiClient(credentials.url, credentials.token)) as client:
            return act(_code_request(client, handlers, options), options)
    except InvalidCode as exc:
        lines, exit_code = list(map(str, exc.errors)), EXIT_USAGE
    except ApiError as exc:
        line, exit_code = explain(exc)
        lines = [line]
    except KeyboardInterrupt:
        lines, exit_code = ["nothing was changed"], 130
    for line in lines:
        write_line(sys.stderr, f"executor_client: {line}")
    return exit_code


def _handlers(modules: Sequence[str], *, may_be_none: bool) -> Sequence[Handler]:
    if not modules:
        raise StartRefused("name the modules with the handlers, for example myapp.jobs or jobs.py")
    import_handlers(modules)
    registry.require_bound()
    handlers = list(filter(None, map(registry.find, registry.names())))
    if not any(handler.declaration for handler in handlers) and not may_be_none:
        names = f"none of its handlers ({', '.join(registry.names())})" if handlers else "no handler there"
        raise StartRefused(
            f"{', '.join(modules)}: {names} declares a job; declare one by arguments of @job, such as"
            " @job('closeOrders', cron='0 0/5 * * * ?')"
        )
    return handlers


def _code_request(
    client: ApiClient, handlers: Sequence[Handler], options: argparse.Namespace
) -> _CodeRequest:
    app_name = options.appname or os.environ.get(APPNAME, "").strip()
    if not app_name:
        raise StartRefused(f"no app name: set {APPNAME} or --appname, the AppName of the executor group")
    exists = any(group["app_name"] == app_name for group in client.groups())
    if not exists and not options.create_group:
        raise StartRefused(
            f"{client.address} has no executor group {app_name} that the token may see: correct --appname,"
            " or add --create-group to make it"
        )
    jobs = DeclaredJobs(handlers, app_name)
    prune = [name if "/" in name else f"{app_name}/{name}" for name in options.prune]
    return _CodeRequest(client, jobs, jobs.document(with_group=not exists), prune)


def _address(options: argparse.Namespace) -> str:
    """Return the console's address from the command line, else from the executor's settings, else ""."""
    if options.admin or options.profile or os.environ.get(URL, "").strip():
        return str(options.admin)
    return os.environ.get(ADMINS, "").partition(",")[0].strip()


def _token(options: argparse.Namespace) -> str:
    return read_token(options.token_file, "--token-file ") if options.token_file is not None else ""


def _print(answer: Item, options: argparse.Namespace) -> None:
    if options.output == "json":
        _write(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    is_coloured = is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")
    for line in plan_lines(answer):
        _write(line if is_coloured else without_colours(line))


def _write(line: str) -> None:
    write_line(sys.stdout, line)


def _confirm(question: str) -> None:
    if not is_terminal(sys.stdin) or sys.stderr is None:
        raise StartRefused("nothing was changed: add --yes to continue without confirmation")
    sys.stderr.write(f"{question} Continue? [y/N]: ")
    sys.stderr.flush()
    if read_line().strip().lower() not in ("y", "yes"):
        raise KeyboardInterrupt


_ABOUT = (
    "A job belongs to the code in the terms that its handler declares, and in all else to the console.\n"
    "A new one arrives stopped, unless it declares enabled=True. The token is an API token of the console,\n"
    "not the access token of executors: XXL_JOB_TOKEN, XXL_JOB_TOKEN_FILE, --token-file or a login."
)
PLAN = Command(
    "show what applying the declared jobs would change",
    f"Show what applying the jobs that handlers declare would change; changes nothing.\n{_ABOUT}",
    _add_plan_arguments,
    _plan,
)
APPLY = Command(
    "make the jobs of a console match the handlers",
    f"Make the jobs of a console match what the handlers declare: all of it, or nothing.\n{_ABOUT}",
    _add_apply_arguments,
    _apply,
)
