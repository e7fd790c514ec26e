"""Console and workers of tests, for the fixture ``console``: ``python -m app.dev.test_server TEMPLATE``.

One process imports all modules, which is most of a start, and starts those of the workers; nothing restarts
them. TEMPLATE is a home folder with a new database and an API token: copied, or made by the first start.
"""

import gc
import shutil
import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from app.clock import now_ms
from app.settings.config import Config
from app.settings.home import keep_new_files_private

#: file of the API token in the home folder
TOKEN_FILE = "api_token"

#: what console and workers import
MODULES = (
    "app.factory",
    "app.services.installation.startup",
    "executor_client.httpd.server",
    "workers.processes.child",
    "wsgi",
)


def main(template: Path) -> None:
    """Run console and workers in the home folder of the settings until SIGTERM or SIGINT."""
    keep_new_files_private()
    config = Config.from_env()
    if template.is_dir():
        shutil.copytree(template, config.home)
    gc.disable()  # While modules are imported it would collect nothing.
    _import_all()
    gc.enable()
    if not template.is_dir():
        _fill(config)
        _keep(config.home, template)
    _start_workers(config)
    import wsgi

    sys.argv[1:] = []
    wsgi.main()


def _import_all() -> None:
    for name in MODULES:
        import_module(name)


def _fill(config: Config) -> None:
    """Make a database with its first administrator and an API token that may do everything."""
    from app.database.engine import bind_engine, session_scope, unbind_engine
    from app.database.opening import create_database_file
    from app.domain.access.api_tokens import Grant
    from app.domain.access.permissions import system_actor
    from app.domain.enums import NodeKind
    from app.services.accounts.api_tokens import TokenDraft, create_token
    from app.services.installation import nodes, startup, upgrade
    from app.settings.home import prepare_home

    prepare_home(config.home)
    create_database_file(config)
    upgrade.upgrade(config.database_url)
    bind_engine(config)
    startup.prepare(config)
    nodes.end(config, NodeKind.CONSOLE)
    draft = TokenDraft("pytest", Grant(frozenset(), admin=True), service=True)
    with session_scope() as session:
        created = create_token(session, draft, actor=system_actor("pytest"), now_ms=now_ms())
    unbind_engine()
    (config.home / TOKEN_FILE).write_text(created.token, encoding="utf-8")


def _keep(home: Path, template: Path) -> None:
    """Copy a filled home folder for later starts; the copy that is complete first stays."""
    with tempfile.TemporaryDirectory(dir=template.parent, ignore_cleanup_errors=True) as folder:
        copy = shutil.copytree(home, Path(folder) / "home")
        with suppress(OSError):
            copy.rename(template)


def _start_workers(config: Config) -> None:
    """Start the processes of the workers, which end with this one."""
    from app.database.engine import bind_engine, unbind_engine
    from app.domain.enums import NodeKind
    from app.services.installation import nodes
    from workers.liveness import Pulse
    from workers.processes.child import PARTS, start_child

    bind_engine(config)
    nodes.start(config, NodeKind.WORKERS, now_ms=now_ms())
    unbind_engine()
    for name in PARTS:
        start_child(name, config, Pulse(), daemon=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
