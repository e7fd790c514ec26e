"""Structure of the tree: imports, sizes, names, inline scripts; and each check can fail."""

import subprocess
import sys
from pathlib import Path

import grimp

from tests.support.architecture import (
    MAX_FILE_LINES,
    MAX_FOLDER_MODULES,
    MAX_FUNCTION_LINES,
    Module,
    area_problems,
    dialect_problems,
    effect_problems,
    folder_problems,
    init_problems,
    inline_problems,
    library_problems,
    name_problems,
    read_modules,
    size_problems,
)
from tests.support.truth_table import truth_table

ROOT = Path(__file__).resolve().parent.parent
MODULES = read_modules(ROOT, "app", "workers", "executor_client")
MIGRATIONS = read_modules(ROOT, "migrations")
TEMPLATES = sorted((ROOT / "app" / "templates").rglob("*.html"))


def lint_imports(folder: Path) -> str:
    """Return what import-linter prints of the contracts in a folder's ``pyproject.toml``."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True).stdout


def test_the_contracts_of_imports_hold() -> None:
    printed = lint_imports(ROOT)
    assert f"Contracts: {len(FORBIDDEN)} kept, 0 broken." in printed, printed


#: an import that breaks each contract, in their order in pyproject.toml, with the module it is added to
FORBIDDEN = (
    ("app.domain.enums", "import app.store.jobs.scheduling"),
    ("app.store.base.paging", "import app.store.runs.listing"),
    ("executor_client.wire.clock", "import app.clock"),
    ("executor_client.logs.lines", "import executor_client.runs.context"),
    ("app.services.runs.logs", "import executor_client.journal.journal"),
    ("app.console.jobs.pages", "import app.pipeline.scan"),
    ("workers.loop", "import app.store.fires.queue"),
    ("app.console.report.load", "import app.database.engine"),
    ("workers.time_ring", "import app.console.web.access"),
)


def test_each_contract_of_imports_can_break(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    added = dict(FORBIDDEN)
    for name, module in MODULES.items():
        path = tmp_path / name.replace(".", "/")
        path = path / "__init__.py" if module.is_package else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(module.source + "\n" + added.get(name, "") + "\n", encoding="utf-8")
    printed = lint_imports(tmp_path)
    assert f"Contracts: 0 kept, {len(FORBIDDEN)} broken." in printed, printed


def test_few_packages_at_the_top_and_few_imports_between_them() -> None:
    """26 packages and modules, a longest chain of 12 and 154 imports are the aim of the present layout."""
    graph = grimp.build_graph("app", "workers", "executor_client", cache_dir=None)
    tops = {name: ".".join(name.split(".")[: 1 + name.startswith("app.")]) for name in graph.modules}
    pairs = {
        (tops[name], tops[target])
        for name in graph.modules
        for target in graph.find_modules_directly_imported_by(name)
        if tops[name] != tops[target]
    }
    below: dict[str, set[str]] = {}
    for top, target in pairs:
        below.setdefault(top, set()).add(target)

    def chain(top: str) -> int:
        return 1 + max((chain(target) for target in below.get(top, ())), default=0)

    nodes = {top for pair in pairs for top in pair}
    figures = (len(nodes), max(map(chain, nodes)), len(pairs))
    # Shown by pytest -s.
    print("packages and modules, longest chain, imports between them:", *figures)  # noqa: T201
    assert all(figure <= most for figure, most in zip(figures, (26, 12, 154), strict=True)), figures


def test_libraries_stay_in_their_packages() -> None:
    assert library_problems(MODULES | MIGRATIONS) == []


def test_no_folder_is_a_heap() -> None:
    assert folder_problems(MODULES) == []


def test_console_areas_do_not_import_each_other() -> None:
    assert area_problems(MODULES) == []


def test_files_and_functions_stay_small() -> None:
    assert size_problems(MODULES) == []


def test_packages_are_empty() -> None:
    assert init_problems(MODULES) == []


def test_only_the_database_package_distinguishes_databases() -> None:
    assert dialect_problems(MODULES) == []


def test_an_import_has_no_effects() -> None:
    assert effect_problems(MODULES) == []


def test_names_are_meaningful() -> None:
    assert name_problems(MODULES) == []


@truth_table("template", TEMPLATES)
def test_a_page_has_no_inline_code(template: Path) -> None:
    assert inline_problems(template.name, template.read_text(encoding="utf-8")) == []


def test_the_checks_cover_the_whole_tree() -> None:
    assert {"app.clock", "app.domain.enums", "app.models", "executor_client", "workers"} <= set(MODULES)
    assert "migrations.env" in MIGRATIONS


def modules(*named: tuple[str, str]) -> dict[str, Module]:
    return {name: Module(name, source) for name, source in named}


@truth_table(
    "name, source",
    [
        ("app.clock", "import flask"),
        ("app.domain.rule", "import sqlalchemy"),
        ("app.domain.rule", "def f():\n    from flask import request"),
        ("app.domain.rule", "from . import enums"),
        ("app.store.jobs.scheduling", "import requests"),
        ("app.services.jobs.jobs", "from flask import request"),
        ("app.services.jobs.jobs", "import requests"),
        ("workers.scheduler", "import flask"),
        ("executor_client.execution.intake", "import sqlalchemy"),
        ("migrations.versions.0001_tables", "from app.models.base import Base"),
        ("elsewhere.thing", "import flask"),
    ],
)
def test_a_forbidden_library_is_found(name: str, source: str) -> None:
    assert len(library_problems(modules((name, source)))) == 1


@truth_table(
    "name, source",
    [
        ("app.settings.config", "import os\nfrom app.errors import NotConfigured"),
        ("app.domain.schedules.schedule", "from app.clock import Millis\nimport croniter"),
        ("app.database.flask_db", "from flask_sqlalchemy import SQLAlchemy"),
        ("app.store.jobs.scheduling", "from sqlalchemy import select"),
        ("app.api.callback", "from flask import request"),
        ("executor_client.mounting.own_server", "from flask import Blueprint"),
        ("migrations.versions.0001_tables", "from alembic import op\nimport sqlalchemy as sa"),
    ],
)
def test_a_library_in_its_package_is_allowed(name: str, source: str) -> None:
    assert library_problems(modules((name, source))) == []


def test_a_folder_of_many_modules_is_found() -> None:
    heap = modules(*((f"app.store.jobs.m{number}", "") for number in range(MAX_FOLDER_MODULES + 1)))
    assert len(folder_problems(heap)) == 1
    heap.popitem()
    assert folder_problems(heap) == []


def test_a_long_file_and_a_long_function_are_found() -> None:
    def function(lines: int) -> str:
        return "def f():\n" + "    x = 1\n" * (lines - 1)

    assert (
        size_problems(modules(("a", "x = 1\n" * MAX_FILE_LINES), ("b", function(MAX_FUNCTION_LINES)))) == []
    )
    assert len(size_problems(modules(("a", "x = 1\n" * (MAX_FILE_LINES + 1))))) == 1
    assert (
        len(
            size_problems(
                modules(
                    ("b", "class C:\n    async " + function(MAX_FUNCTION_LINES + 1).replace("\n", "\n    "))
                )
            )
        )
        == 1
    )


def test_a_package_with_code_is_found() -> None:
    assert (
        init_problems(
            {"app.store": Module("app.store", '"""Said."""\nfrom app.store import jobs', is_package=True)}
        )
        != []
    )
    assert init_problems({"app.store": Module("app.store", '"""Said."""\n', is_package=True)}) == []
    assert init_problems({"app.store": Module("app.store", "", is_package=True)}) == []


@truth_table(
    "source",
    [
        "import os\nHOME = os.environ['HOME']",
        "import os\nHOME = os.getenv('HOME')",
        "import os\nHOME = os.environ.get('HOME', '')",
        "from os import environ",
        "class C:\n    import threading\n    thread = threading.Thread()",
        "import subprocess\nX = [subprocess.run(['ls'])]",
        "def f(now=time.time()): ...",
        "engine = create_engine('sqlite://')",
        "with open('x') as stream: ...",
        "if True:\n    app = create_app()",
        "TEXT = Path('x').read_text()",
    ],
)
def test_an_effect_of_an_import_is_found(source: str) -> None:
    assert effect_problems(modules(("app.a", source))) != []
    assert effect_problems(modules(("workers.__main__", source))) == []


def test_code_that_runs_later_is_no_effect_of_an_import() -> None:
    later = (
        "clock = time.monotonic\ndef f():\n    return os.environ['HOME']\nclass C:\n    x ="
        " field(default_factory=lambda: open('x'))\n"
    )
    assert effect_problems(modules(("app.a", later))) == []


@truth_table(
    "name, target, is_allowed",
    [
        ("app.console.jobs.pages", "app.console.ui.labels", True),
        ("app.console.jobs.pages", "app.console.web.current", True),
        ("app.console.jobs.pages", "app.console.jobs.form.forms", True),
        ("app.console.jobs.pages", "app.console.runs.pages", False),
        ("app.console.ui.labels", "app.console.web.language", True),
        ("app.console.ui.labels", "app.console.jobs.form.forms", False),
        ("app.console.web.guards", "app.console.ui.labels", False),
        ("app.console.scripting.login", "app.console.account.login", True),
        ("app.console.scripting.jobs", "app.console.account.pages", False),
    ],
)
def test_an_import_of_another_area_is_found(name: str, target: str, is_allowed: bool) -> None:
    known = modules((target, ""), (name, f"import {target}"))
    assert (area_problems(known) == []) is is_allowed


@truth_table(
    "source",
    [
        "kind = connection.dialect.name",
        "kind = session.get_bind().dialect.name",
        "kind = make_url(url).get_backend_name()",
        "if kind == 'mysql': ...",
        "if 'sqlite' != kind: ...",
        "if kind in ('mysql', 'mariadb'): ...",
        "if url.startswith('postgresql'): ...",
        "CLOCKS = {'mysql': 'SELECT 1', 'postgresql': 'SELECT 2'}",
    ],
)
def test_code_that_distinguishes_databases_is_found(source: str) -> None:
    assert dialect_problems(modules(("app.store.nodes.nodes", source))) != []
    assert dialect_problems(modules(("app.databases", source))) != []
    assert dialect_problems(modules(("app.database.dialects.choice", source))) == []


def test_a_dialect_may_be_used_anywhere() -> None:
    source = "hint = rows.with_hint(Fire, 'x', 'mysql')\nname = dialect_of_url(url).name\nkind.name == 'job'"
    assert dialect_problems(modules(("app.store.nodes.nodes", source))) == []


def test_vague_names_are_found() -> None:
    for module in ("app.util", "app.store.job_helpers", "workers.common"):
        assert len(name_problems(modules((module, "")))) == 1
    for source in ("def do_it(): ...", "class C:\n    def _process_row(self): ...", "class JobManager: ..."):
        assert len(name_problems(modules(("app.a", source)))) == 1
    assert (
        name_problems(modules(("app.store.jobs.scheduling", "class Document: ...\ndef download(): ...")))
        == []
    )


@truth_table(
    "template",
    [
        "<script>alert(1)</script>",
        '<script type="application/json">{}</script>',
        '<script nonce="{{ nonce }}">go()</script>',
        "<style>p { color: red }</style>",
        '<p style="color: red">',
        '<p class="a" {% if b %}style="color: {{ c }}"{% endif %}>',
        "<button onclick='go()'>",
        '{{ form.name(onchange="go()") }}',
        '<button hx-on:click="go()">',
        '<a href="javascript:go()">',
    ],
)
def test_inline_code_in_a_page_is_found(template: str) -> None:
    assert [problem.split(" has ")[0] for problem in inline_problems("page.html", "<p>\n" + template)] == [
        "page.html:2"
    ]


@truth_table(
    "template",
    [
        '<script src="/static/js/jobs.js" defer></script>',
        "<script\n  type=\"module\"\n  src=\"{{ url_for('static', filename='js/glue.js') }}\"></script>",
        '<link rel="stylesheet" href="app.css">',
        '<p data-style="wide" data-onclick="no">Press "on" to go on; 1 on = 2</p>',
        "{# <script>explained</script> #}",
        '{{ url_for("jobs.index", only="mine") }}',
    ],
)
def test_a_page_that_loads_its_scripts_is_allowed(template: str) -> None:
    assert inline_problems("page.html", template) == []
