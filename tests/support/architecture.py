"""Structure checks of the source tree, run by ``test_architecture.py``; each returns one line per problem.

Which of our packages may import which is in the contracts of import-linter, in ``pyproject.toml``.

They read syntax trees and import nothing. They take modules, not paths, so that each can be shown modified
source.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 50
MAX_FOLDER_MODULES = 20
#: folders with a module for each table or stage
LARGE_FOLDERS = ("app.models", "app.pipeline")

SQLALCHEMY = ("sqlalchemy",)
FLASK = ("flask", "flask_babel", "flask_login", "werkzeug", "jinja2", "markupsafe", "wtforms")
#: third-party packages that the modules below a name may import; the longest name counts
LIBRARIES: dict[str, tuple[str, ...]] = {
    "app": (*FLASK, *SQLALCHEMY),
    "app.clock": (),
    "app.compat": (),
    "app.errors": (),
    "app.runtime": (),
    "app.settings": (),
    "app.settings.sealing": ("cryptography",),
    "app.domain": ("croniter", "cron_descriptor"),
    "app.domain.jobs.structures": ("pydantic",),
    "app.domain.calendars.document": ("pydantic",),
    "app.domain.limits.document": ("pydantic",),
    "app.domain.rounds.document": ("pydantic",),
    "app.domain.promises.document": ("pydantic",),
    "app.models": SQLALCHEMY,
    "app.database": SQLALCHEMY,
    "app.database.list_parameters": ("psycopg",),
    "app.database.connections.answer_deadline": ("psycopg",),
    "app.database.connections.poolers": (*SQLALCHEMY, "psycopg"),
    "app.database.connections.mysql_drivers": ("pymysql",),
    "app.database.flask_db": (*SQLALCHEMY, "flask_sqlalchemy"),
    "app.store": SQLALCHEMY,
    "app.blobs": (),
    "app.blobs.s3": ("minio", "urllib3"),
    "app.executors": ("requests", "urllib3", "httptools"),
    "app.sign_on": ("authlib", "joserfc", "requests", "urllib3"),
    "app.pipeline": SQLALCHEMY,
    "app.services": (*SQLALCHEMY, "alembic", "apprise", "argon2", "prometheus_client"),
    "app.services.calendars.countries": ("holidays",),
    "app.api.v1": (*FLASK, *SQLALCHEMY, "pydantic", "openapi_pydantic"),
    "app.commands": ("click", "flask", "flask_migrate", *SQLALCHEMY),
    "app.container": SQLALCHEMY,
    "workers": (*SQLALCHEMY, "uvloop"),
    "executor_client": ("flask", "werkzeug", "waitress", "urllib3", "certifi", "typing_extensions"),
    "executor_client.compat": (),
    "executor_client.wire": (),
    # installed by extras of the client: [test], [cli]
    "executor_client.pytest_plugin": ("pytest",),
    "executor_client.cli": ("click", "yaml"),
    "executor_client.code": ("yaml",),
    "migrations.env": ("alembic", "click", *SQLALCHEMY),
    "migrations.versions": ("alembic", *SQLALCHEMY),
}
OURS = ("app", "workers", "executor_client", "migrations", "wsgi")
#: packages with code in ``__init__.py``: a blueprint's URL map, the client's public names
SPEAKING_INITS = ("app.console", "app.api", "app.api.v1.resources", "executor_client")
#: packages of the console that every area may use; ``ui`` itself only ``web``
SHARED_AREAS = ("web", "ui")
#: area -> modules of other areas it may import, with the reason
AREA_EXCEPTIONS = {
    # the scripts' login makes the same checks as the page's
    "scripting": ("app.console.account.login",),
    # the preview of a parameter gives the reason of a run as its page does
    "jobs": ("app.console.runs.trace",),
    # an administrator ends the sessions of others on the same confirmation pages, and has the same pages for
    # the API tokens of all
    "users": ("app.console.account.sessions", "app.console.account.tokens"),
}
#: kinds of database, which only DATABASE_PACKAGES distinguish
DATABASES = {"sqlite", "mysql", "mariadb", "postgresql"}
DATABASE_PACKAGES = ("app.database.dialects", "app.database.connections", "app.database.urls", "app.settings")
#: run, never imported: only they read the environment or start something at module level
ENTRIES = ("wsgi", "manage", "__main__")

#: calls that open, read, start or measure something
EFFECTS = re.compile(
    r"open|os\.\w+|Path\(.*\)\.(read|write|open|mkdir|exists|is_)\w*|Path\.(cwd|home)|create_engine"
    r"|create_app|Config\.from_env|now_ms|time\.\w+|logging\.(basicConfig|config\.\w+)|signal\.\w+"
    r"|socket\.\w+|subprocess\.\w+|multiprocessing\.(Process|Queue|get_context)"
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
    "click|dblclick|change|input|submit|reset|load|unload|error|focus|blur|key\\w+|mouse\\w+|pointer\\w+"
    "|touch\\w+|drag\\w*|drop|scroll|wheel|toggle|select|paste|copy|cut|animation\\w+|transition\\w+"
    "|before\\w+|after\\w+|hashchange|popstate|message|invalid|close|cancel|resize"
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

    @cached_property
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


def library_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check the third-party packages that modules import against LIBRARIES, and that imports are absolute."""
    return [
        f"{module.name}:{line} must not import {target}"
        for module in modules.values()
        for line, target in imports(module, modules)
        if not _may_import(module.name, target)
    ]


def _may_import(name: str, target: str) -> bool:
    library = target.partition(".")[0]
    if library in OURS:  # a migration stands still when the program changes
        return not name.startswith("migrations.versions.")
    if library in sys.stdlib_module_names:
        return True
    prefixes = [prefix for prefix in LIBRARIES if name == prefix or name.startswith(prefix + ".")]
    return library in LIBRARIES[max(prefixes, key=len)] if prefixes else False


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


def folder_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check that folders have few modules, ``__init__.py`` not counted."""
    folders = Counter(name.rpartition(".")[0] for name, module in modules.items() if not module.is_package)
    return [
        f"{folder} has {count} modules, more than {MAX_FOLDER_MODULES}"
        for folder, count in folders.items()
        if count > MAX_FOLDER_MODULES and folder not in LARGE_FOLDERS
    ]


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


def dialect_problems(modules: Mapping[str, Module]) -> list[str]:
    """Check that only a ``Dialect`` distinguishes databases, and what parses URLs."""
    return [
        f"{module.name}:{node.lineno} distinguishes databases, which a Dialect does: {ast.unparse(node)}"
        for module in modules.values()
        if not any(f"{module.name}.".startswith(f"{package}.") for package in DATABASE_PACKAGES)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.expr) and _distinguishes_databases(node)
    ]


def _distinguishes_databases(node: ast.AST) -> bool:
    """Whether code reads the name of a dialect, compares one, or has a table of several."""
    if isinstance(node, ast.Attribute):
        owner = ast.unparse(node.value).rpartition(".")[2]
        return node.attr == "get_backend_name" or (node.attr == "name" and owner == "dialect")
    if isinstance(node, ast.Compare):
        return any(_names_of_databases(part) for part in (node.left, *node.comparators))
    if isinstance(node, ast.Dict):
        return len(_names_of_databases(*filter(None, node.keys))) > 1
    is_start = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".startswith")
    return is_start and bool(_names_of_databases(*node.args))  # type: ignore[attr-defined]


def _names_of_databases(*nodes: ast.expr) -> set[object]:
    parts = [part for node in nodes for part in getattr(node, "elts", [node])]
    return DATABASES & {part.value for part in parts if isinstance(part, ast.Constant)}


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
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if node.name not in GIVEN_NAMES and VAGUE_NAMES.match(node.name.lstrip("_")):
                problems.append(f"{module.name}:{node.lineno} {node.name}: a name like this says nothing")
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
