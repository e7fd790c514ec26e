"""Structure checks of the source tree, run by ``test_architecture.py``; each returns one line per problem.

They read syntax trees and import nothing. They take modules, not paths, so that each can be shown modified
source.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 50

#: imports allowed in every layer
BASE = (
    "app.clock",
    "app.errors",
    "app.settings.config",
    "app.settings.console_address",
    "app.settings.oidc",
    "app.settings.home",
    "app.runtime.program",
    "app.settings.env_files",
    "app.settings.parsers",
    "app.settings.sources",
    "app.runtime.logging",
    "app.runtime.metrics",
    "app.runtime.environ",
    "app.pipeline.sent_log_ids",
    "app.runtime.systemd",
    "app.runtime.wake_up",
    "executor_client.wire.callbacks",
    "executor_client.wire.registration_check",
    "executor_client.wire.protocol",
    "executor_client.wire.run_reports",
    "executor_client.wire.version",
    "executor_client.wire.lenient_json",
)
DATABASE = (
    "app.settings.sealing",
    "app.database.urls",
    "app.database.moved",
    "app.models",
    "app.database.engine",
    "app.database.opening",
    "app.database.faults",
    "app.database.batch_writer",
    "app.database.mysql_drivers",
    "app.database.servers",
    "app.database.server_checks",
    "app.database.sqlite",
    "app.database.statement_times",
    "app.database.list_parameters",
    "app.database.sql.compiled",
    "app.database.driver",
    "app.database.sql.autocommit",
)
SQLALCHEMY = ("sqlalchemy",)
FLASK = (
    "flask",
    "flask_babel",
    "flask_login",
    "werkzeug",
    "jinja2",
    "markupsafe",
    "wtforms",
)


@dataclass(frozen=True)
class Layer:
    """Allowed imports of modules below a name, besides the standard library, the base and each other."""

    packages: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


#: longest name first: the first match is a module's layer
LAYERS: dict[str, Layer] = {
    "app.domain": Layer(libraries=("croniter", "cron_descriptor")),
    "app.settings.sealing": Layer(libraries=("cryptography",)),
    "app.models": Layer(("app.domain.jobs.children", "app.domain.enums", "app.settings.sealing"), SQLALCHEMY),
    "app.database.sqlite_wal_space": Layer(),
    "app.database.sqlite_write_lock": Layer(("app.database.sqlite_wal_space",)),
    "app.database.statement_times": Layer(libraries=SQLALCHEMY),
    "app.database.list_parameters": Layer(libraries=("psycopg",)),
    "app.database.answer_deadline": Layer(libraries=("psycopg",)),
    "app.database.poolers": Layer(libraries=(*SQLALCHEMY, "psycopg")),
    "app.database.server_checks": Layer(("app.database.poolers",), SQLALCHEMY),
    "app.database.servers": Layer(
        (
            "app.database.answer_deadline",
            "app.database.urls",
            "app.database.list_parameters",
            "app.database.server_checks",
            "app.database.driver",
            "app.database.mysql_drivers",
        ),
        SQLALCHEMY,
    ),
    "app.database.mysql_drivers": Layer(("app.database.list_parameters",), ("pymysql",)),
    "app.database.sqlite": Layer(
        ("app.database.moved", "app.database.sqlite_wal_space", "app.database.sqlite_write_lock"), SQLALCHEMY
    ),
    "app.database.urls": Layer(libraries=SQLALCHEMY),
    "app.database.moved": Layer(
        ("app.settings.sealing", "app.database.urls", "app.database.servers"), SQLALCHEMY
    ),
    "app.database.engine": Layer(
        (
            "app.settings.sealing",
            "app.database.urls",
            "app.database.moved",
            "app.models",
            "app.domain.enums",
            "app.database.server_checks",
            "app.database.servers",
            "app.database.sqlite",
            "app.database.statement_times",
            "app.database.sqlite_write_lock",
        ),
        SQLALCHEMY,
    ),
    "app.database.opening": Layer(
        ("app.database.urls", "app.database.engine", "app.database.server_checks"), SQLALCHEMY
    ),
    "app.database.flask_db": Layer(("app.models",), ("flask_sqlalchemy",)),
    "app.database.faults": Layer(
        ("app.database.engine", "app.database.moved", "app.models", "app.database.sqlite_write_lock"),
        SQLALCHEMY,
    ),
    "app.database.batch_writer": Layer(
        ("app.database.engine", "app.models", "app.database.faults"), SQLALCHEMY
    ),
    "app.database.sql.compiled": Layer((), SQLALCHEMY),
    "app.database.driver": Layer((), SQLALCHEMY),
    "app.database.sql.autocommit": Layer(
        (
            "app.database.engine",
            "app.database.driver",
            "app.database.moved",
            "app.database.sqlite",
            "app.database.sqlite_write_lock",
            "app.database.sql.compiled",
        ),
        SQLALCHEMY,
    ),
    "app.store": Layer((*DATABASE, "app.domain"), SQLALCHEMY),
    "app.executors": Layer(("app.domain",), ("requests", "urllib3", "httptools")),
    # all calls to the OpenID provider
    "app.sign_on": Layer(
        ("app.domain", "app.settings.sealing"), ("authlib", "joserfc", "requests", "urllib3")
    ),
    "app.pipeline": Layer(("app.store", "app.executors", *DATABASE, "app.domain"), SQLALCHEMY),
    "app.services": Layer(
        ("app.pipeline", "app.store", "app.executors", "app.sign_on", *DATABASE, "app.domain"),
        (*SQLALCHEMY, "alembic", "apprise", "argon2", "prometheus_client"),
    ),
    "app.console": Layer(
        (
            "app.services",
            "app.pipeline.complete",
            "app.pipeline.registration",
            "app.store",
            *DATABASE,
            "app.domain",
        ),
        (*FLASK, *SQLALCHEMY),
    ),
    "app.api": Layer(
        (
            "app.services",
            "app.pipeline.complete",
            "app.pipeline.registration",
            "app.store",
            *DATABASE,
            "app.domain",
            "executor_client.httpd.batching",
        ),
        (*FLASK, *SQLALCHEMY),
    ),
    # made at the first request: only app.api.v1.mount is imported at the start
    "app.api.v1": Layer(
        (
            "app.services",
            "app.pipeline.complete",
            "app.pipeline.registration",
            "app.store",
            *DATABASE,
            "app.domain",
        ),
        (*FLASK, *SQLALCHEMY, "pydantic", "openapi_pydantic"),
    ),
    "app.commands": Layer(
        (
            "app.api.v1.access",
            "app.api.v1.application",
            "app.executors.gateway",
            "app.database.flask_db",
            "app.services",
            *DATABASE,
            "app.domain",
            "executor_client.api",
            "executor_client.cli",
            "executor_client.config.terminal",
        ),
        ("click", "flask", "flask_migrate", *SQLALCHEMY),
    ),
    "app.container": Layer(("app.services", "app.store", *DATABASE, "app.domain"), SQLALCHEMY),
    # console and workers in one program, for tests of executors
    "app.dev.test_server": Layer(("app", "workers", "wsgi")),
    # factory, and the programs that start the others: they connect all parts
    "app": Layer(("app", "executor_client.httpd.batching"), (*FLASK, *SQLALCHEMY)),
    "workers": Layer(
        (
            "app.pipeline",
            "app.services",
            "app.database.moved",
            "app.database.opening",
            "app.database.engine",
            "app.database.faults",
            "app.database.batch_writer",
            "app.domain",
        ),
        (*SQLALCHEMY, "uvloop"),
    ),
    # typing_extensions for type checkers only; the commands plan and apply are code's
    "executor_client": Layer(
        ("executor_client.code",),
        ("flask", "werkzeug", "waitress", "urllib3", "certifi", "typing_extensions"),
    ),
    # of tests only: ``pip install 'xxl-job-executor[test]'``
    "executor_client.pytest_plugin": Layer(("executor_client",), ("pytest",)),
    # of the command line only: ``pip install 'xxl-job-executor[cli]'``
    "executor_client.cli": Layer(("executor_client",), ("click", "yaml")),
    "executor_client.code": Layer(("executor_client",), ("yaml",)),
    "migrations.env": Layer(
        (
            "app.models.base",
            "app.database.moved",
            "app.database.opening",
            "app.database.engine",
            "app.database.faults",
            "app.database.servers",
            "app.services.installation.schema",
            "app.services.installation.upgrade",
            "app.store.copies.schema",
            "app.store.copies.upgrade_lock",
        ),
        ("alembic", "click", *SQLALCHEMY),
    ),
    "migrations.versions": Layer(libraries=("alembic", *SQLALCHEMY)),
}
#: layers that may not use the whole base
ALONE = {
    "executor_client": (),
    "executor_client.cli": (),
    "executor_client.code": (),
    "migrations.env": ("app.clock", "app.settings.config", "app.errors"),
    "migrations.versions": (),
}
#: packages with code in ``__init__.py``: a blueprint's URL map, the client's public names
SPEAKING_INITS = ("app.console", "app.api", "app.api.v1.resources", "executor_client")
#: packages of the console that every area may use; ``ui`` itself only ``web``
SHARED_AREAS = ("web", "ui")
#: area -> modules of other areas it may import, with the reason
AREA_EXCEPTIONS = {
    # the scripts' login makes the same checks as the page's
    "scripting": ("app.console.account.login",),
    # an administrator ends the sessions of others on the same confirmation pages, and has the same pages for
    # the API tokens of all
    "users": ("app.console.account.sessions", "app.console.account.tokens"),
}
#: run, never imported: only they read the environment or start something at module level
ENTRIES = ("wsgi", "manage", "__main__")

#: calls that open, read, start or measure something
EFFECTS = re.compile(
    r"open|os\.\w+|Path\(.*\)\.(read|write|open|mkdir|exists|is_)\w*|Path\.(cwd|home)|create_engine|create_app|Config\.from_env|now_ms"
    r"|time\.\w+|logging\.(basicConfig|config\.\w+)|signal\.\w+|socket\.\w+|subprocess\.\w+|multiprocessing\.(Process|Queue|get_context)"
    r"|(threading\.)?(Thread|Timer)|(\w+\.)?(ThreadPoolExecutor|ProcessPoolExecutor)"
)
VAGUE_MODULES = {
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "misc",
    "manager",
    "managers",
    "info",
    "data",
}
#: names required by SQLAlchemy and Flask
GIVEN_NAMES = {"process_bind_param", "process_result_value", "process_literal_param", "process_response"}
VAGUE_NAMES = re.compile(r"(do|process)_|\w*(Util|Utils|Helper|Manager|Common)$")

EVENTS = (
    "click|dblclick|change|input|submit|reset|load|unload|error|focus|blur|key\\w+|mouse\\w+|pointer\\w+|touch\\w+|drag\\w*|drop|scroll|wheel"
    "|toggle|select|paste|copy|cut|animation\\w+|transition\\w+|before\\w+|after\\w+|hashchange|popstate|message|invalid|close|cancel|resize"
)
#: forbidden in a page by ``script-src 'self'; style-src 'self'``
INLINE = {
    "an inline script": re.compile(r"<script\b(?![^>]*\ssrc\s*=)", re.IGNORECASE),
    "an inline style sheet": re.compile(r"<style\b", re.IGNORECASE),
    "a style attribute": re.compile(r"(?<![\w.-])style\s*=\s*[\"'{]", re.IGNORECASE),
    "an event attribute": re.compile(rf"(?<![\w.-])on({EVENTS})\s*=\s*[\"'{{]", re.IGNORECASE),
    "htmx code": re.compile(r"\bhx-on\b|hx-(vals|headers)\s*=\s*.js:", re.IGNORECASE),
    "a javascript: address": re.compile(r"javascript:", re.IGNORECASE),
}


@dataclass(frozen=True)
class Module:
    """One source file by its dotted name; a package's ``__init__.py`` has the package's name."""

    name: str
    source: str
    is_package: bool = False

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)


def read_modules(root: Path, *packages: str) -> dict[str, Module]:
    """Return all modules of some packages by name."""
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return found


def imports(module: Module, known: Mapping[str, Module]) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every import of a module, also inside functions."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = "." * node.level + (node.module or "")
            for alias in node.names:
                below = f"{parent}.{alias.name}"
                yield node.lineno, below if below in known else parent


def layer_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check every import against LAYERS."""
    problems = []
    for module in modules.values():
        for line, target in imports(module, modules):
            if not _may_import(module.name, target):
                problems.append(f"{module.name}:{line} must not import {target}")
    return problems


def _may_import(name: str, target: str) -> bool:
    if target.split(".")[0] in sys.stdlib_module_names:
        return True
    if target.startswith("."):
        return False
    if name in BASE:
        return target in BASE
    prefix = next((prefix for prefix in sorted(LAYERS, key=len, reverse=True) if _below(name, prefix)), None)
    if prefix is None:
        return False
    layer = LAYERS[prefix]
    base = ALONE.get(prefix, BASE)
    return any(_below(target, allowed) for allowed in (prefix, *layer.packages, *layer.libraries, *base))


def _below(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def cycle_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check that modules do not import each other in a cycle."""
    graph = {
        name: {target for _, target in imports(module, modules) if target in modules} - {name}
        for name, module in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as exc:
        return ["import cycle: " + " <- ".join(exc.args[1])]
    return []


def size_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check the hard limits on files and functions."""
    problems = []
    for module in modules.values():
        lines = len(module.source.splitlines())
        if lines > MAX_FILE_LINES:
            problems.append(f"{module.name} has {lines} lines, more than {MAX_FILE_LINES}")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    problems.append(
                        f"{module.name}:{node.lineno} {node.name} has {lines} lines, more than"
                        f" {MAX_FUNCTION_LINES}"
                    )
    return problems


def init_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check that importing a package runs nothing: its ``__init__.py`` has at most a docstring."""
    silent = [module for module in modules.values() if module.is_package and not _may_speak(module.name)]
    return [
        f"{module.name}.__init__ must be empty"
        for module in silent
        if module.tree.body[bool(ast.get_docstring(module.tree)) :]
    ]


def _may_speak(name: str) -> bool:
    return name in SPEAKING_INITS or (name.startswith("app.console.") and name != "app.console.web")


def area_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check that an area of the console imports ``web`` and ``ui`` but no other area."""
    problems = []
    for module in modules.values():
        area = _area(module.name, modules)
        for line, target in imports(module, modules) if area else ():
            other = _area(target, modules)
            allowed = SHARED_AREAS[:1] if area in SHARED_AREAS else SHARED_AREAS
            if other in (None, area, *allowed) or target in AREA_EXCEPTIONS.get(area or "", ()):
                continue
            problems.append(f"{module.name}:{line} must not import {target}, which is of another area")
    return problems


def _area(name: str, modules: Mapping[str, Module]) -> str | None:
    """Return the area of a console module; None outside the console and for modules beside the areas."""
    parts = name.split(".")
    if parts[:2] != ["app", "console"] or len(parts) < 3:
        return None
    package = modules.get(".".join(parts[:3]))
    return parts[2] if package is None or package.is_package else None


def effect_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check that importing a module opens nothing, reads no environment and starts no thread."""
    problems = []
    for module in modules.values():
        if module.name.rpartition(".")[2] in ENTRIES:
            continue
        for node in _executed_at_import(module.tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if EFFECTS.fullmatch(called) or (
                isinstance(node, ast.Attribute) and ast.unparse(node) == "os.environ"
            ):
                problems.append(
                    f"{module.name}:{node.lineno} does something when it is imported: {ast.unparse(node)}"
                )  # type: ignore[attr-defined]
            if (
                isinstance(node, ast.ImportFrom)
                and node.module == "os"
                and {"environ", "getenv"} & {alias.name for alias in node.names}
            ):
                problems.append(f"{module.name}:{node.lineno} write os.environ, so that its use is seen")
    return problems


def _executed_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the code that runs at import: not the bodies of functions, but their decorators and defaults."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in (*child.decorator_list, *child.args.defaults, *filter(None, child.args.kw_defaults)):
                yield part
                yield from _executed_at_import(part)
            continue
        yield child
        yield from _executed_at_import(child)


def name_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check for vague names."""
    problems = [
        f"{name}: a module named so says nothing"
        for name in modules
        if VAGUE_MODULES & set(name.rpartition(".")[2].split("_"))
    ]
    for module in modules.values():
        for node in ast.walk(module.tree):
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if named and node.name not in GIVEN_NAMES and VAGUE_NAMES.match(node.name.lstrip("_")):  # type: ignore[attr-defined]
                problems.append(f"{module.name}:{node.lineno} {node.name}: a name like this says nothing")  # type: ignore[attr-defined]
    return problems


def inline_problems(name: str, template: str) -> list[str]:
    """Check that a template has no script, style or event attribute, which the page's CSP would block."""
    without_comments = re.sub(
        r"\{#.*?#\}", lambda comment: "\n" * comment.group().count("\n"), template, flags=re.DOTALL
    )
    return [
        f"{name}:{without_comments.count(chr(10), 0, found.start()) + 1} has {kind}: {found.group()}"
        for kind, pattern in INLINE.items()
        for found in pattern.finditer(without_comments)
    ]
