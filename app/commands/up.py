"""Command ``up``: console and workers in the foreground, with database, password and token of their own.

On a server the parts are services: docs/operations.md.
"""

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from app.commands.context import CommandFailed, one_line_errors
from app.commands.invocation import Settings
from app.commands.parts import PartFailed, Parts, shown
from app.settings.config import Config
from app.settings.console_address import answers, console_address
from app.settings.home import PASSWORD_FILE, access_tokens, prepare_home

#: the demo executor's application name, known to ``seed-demo`` too
DEMO_APPNAME = "xxl-job-executor-sample"
#: in the executor's log once a console has accepted it
REGISTERED = " registered admin="
#: without the current folder, which may contain packages that are called as ours
PYTHON = (sys.executable, "-P", "-m")


@click.command("up", short_help="Start console and workers in the foreground.")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of database, secrets, logs and an optional .env; default: XXL_JOB_HOME, else instance.",
)
@click.option("--demo", is_flag=True, help="Also start a demo executor, and create demo jobs for it.")
@one_line_errors
def up(home: Path | None, demo: bool) -> None:
    """Start console and workers until Ctrl-C, the database first if it has no tables yet.

    Settings are the variables of docs/configuration.md, and XXL_JOB_EXECUTOR_PORT for the demo executor.
    """
    settings = click.get_current_context().find_object(Settings)
    assert settings is not None
    env_file = settings.env_file
    folder = Path.cwd() if home is None else home.absolute()
    if home is not None:
        os.environ["XXL_JOB_HOME"] = str(folder)
    config = Config.from_env(env_file=env_file, dotenv=folder / ".env", default_home=settings.default_home)
    os.environ["XXL_JOB_HOME"] = str(config.home)
    options = ("--env-file", str(env_file.absolute())) if env_file else ()
    try:
        start(config, folder, options, demo=demo)
    except PartFailed as exc:
        raise CommandFailed(str(exc)) from exc


def start(config: Config, folder: Path, options: Sequence[str], *, demo: bool) -> None:
    """Start the parts in a folder, print how to log in, and stop them in order; raises PartFailed."""
    prepare_home(config.home)
    click.echo(f"{'home':<15} {shown(config.home)}; elsewhere, commands need XXL_JOB_HOME={config.home}")
    access_token = access_tokens(config)[0]
    executor_port = read_port("XXL_JOB_EXECUTOR_PORT", 9999)
    require_free("XXL_JOB_PORT", config.host, config.port)
    address = console_address(config)
    parts = Parts(config.home / "logs", folder)
    try:
        parts.once("schema", [*PYTHON, "app", *options, "db", "upgrade"])
        parts.start("console", [*PYTHON, "wsgi", *options])
        parts.wait("console", lambda: answers(f"{address}/health"))
        # The executor starts before anything fires, because a run without it would fail.
        has_demo = demo and start_demo(
            parts, demo_command(config, address, executor_port), executor_port, access_token
        )
        parts.start("workers", [*PYTHON, "workers", *options])
        if has_demo:
            parts.once("demo job", [*PYTHON, "app", *options, "seed-demo"])
        parts.wait("workers", lambda: answers(f"{address}/ready", error=False), "scan")
        if not parts.stops:
            welcome(address, config.home, password_given=bool(config.admin_password), has_demo=has_demo)
        parts.watch()
    finally:
        parts.stop()


def demo_command(config: Config, address: str, port: int) -> list[str]:
    """Return the command of the demo executor, which listens on loopback only.

    It allows GLUE in Python only to a console that is on loopback, too; a setting of the user comes first.
    """
    command = [*PYTHON, "executor_client", "executor_client.demo"]
    command += ["--admin", address, "--appname", DEMO_APPNAME, "--host", "127.0.0.1", "--port", str(port)]
    is_set = bool(os.environ.get("XXL_JOB_EXECUTOR_ALLOW_GLUE"))
    return command + (["--allow-glue", "python"] if config.on_loopback and not is_set else [])


def start_demo(parts: Parts, command: Sequence[str], port: int, access_token: str) -> bool:
    """Start the demo executor and wait until it is registered; otherwise print why there is none."""
    try:
        require_free("XXL_JOB_EXECUTOR_PORT", "127.0.0.1", port)
        parts.start("executor", command, XXL_JOB_ACCESS_TOKEN=access_token)
        log = parts.log_path("executor")
        parts.wait("executor", lambda: REGISTERED in log.read_text(errors="replace"), "register")
    except PartFailed as exc:
        parts.drop("executor")
        click.echo(f"There is no demo executor, and no demo job is added: {exc}")
        return False
    return True


def read_port(variable: str, default: int) -> int:
    """Return the port in an environment variable; raises PartFailed if it is invalid."""
    text = os.environ.get(variable) or str(default)
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise PartFailed(f"{variable}={text!r}: a whole number from 1 to 65535 is needed")
    return int(text)


def require_free(variable: str, host: str, port: int) -> None:
    """Raise PartFailed if a port cannot be listened on; ``variable`` names the setting to change."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            raise PartFailed(
                f"port {port} on {host} cannot be used ({exc.strerror}); choose another one: {variable}=..."
            ) from exc


def welcome(address: str, home: Path, *, password_given: bool, has_demo: bool) -> None:
    """Print the address, the first password if it is still valid, and what to do next."""
    password, where = "(was changed)", "only as a hash, in the database"
    first = ""
    if password_given:
        password, first = "the one in XXL_JOB_ADMIN_PASSWORD", ", choose your own password"
    elif (file := home / PASSWORD_FILE).exists():
        password, where = file.read_text(encoding="utf-8").strip(), f"{shown(file)}, until you change it"
        first = ", choose your own password"
    then = "run a demo job from its menu, open its log" if has_demo else "connect an executor: Executors"
    click.echo(
        f"""
ready           console and workers run, jobs are fired
open            {address}/
user            admin
admin password: {password}
stored in       {where}
then            log in{first}, {then}
stop            Ctrl-C"""
    )
