"""What the workers load: every module is in the memory of three processes."""

import subprocess
import sys

from tests.executor_client.process import ROOT

#: of the console, of other databases, and of background tasks, which load them when there is one
NOT_LOADED = (
    *("flask", "werkzeug", "jinja2", "click", "alembic", "apprise", "cryptography", "requests", "holidays"),
    *("sqlalchemy.dialects.mysql", "sqlalchemy.dialects.postgresql"),
    *("app.services.code.importing", "app.services.jobs.bulk"),
)


def test_the_workers_load_nothing_that_only_others_need() -> None:
    code = f"import sys, workers.__main__; print(*[name for name in {NOT_LOADED} if name in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert loaded.stdout.split() == []
