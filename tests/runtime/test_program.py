"""Limits of the services."""

import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.runtime.program import raise_file_limit
from workers.__main__ import FILES

SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
LOW = 512


@pytest.fixture(autouse=True)
def low_limit() -> Iterator[None]:
    """Few open files, as after a login."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (LOW, HARD))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))


@pytest.mark.parametrize(("needed", "limit"), [(LOW + 100, LOW + 100), (LOW, LOW), (LOW - 1, LOW)])
def test_the_limit_of_open_files_is_raised_to_what_is_needed(needed: int, limit: int) -> None:
    assert raise_file_limit(needed) == needed
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limit, HARD)


@pytest.mark.skipif(HARD == resource.RLIM_INFINITY, reason="nothing exceeds the hard limit")
def test_the_limit_of_open_files_is_not_raised_over_the_hard_one() -> None:
    assert raise_file_limit(HARD + 1) == HARD
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (HARD, HARD)


def test_the_workers_raise_their_limit_of_open_files() -> None:
    code = (
        "import resource, sys; from workers.__main__ import main; sys.argv[1:] = ['--env-file', '/nowhere'];"
        " print(main(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", str(FILES if HARD == resource.RLIM_INFINITY else min(FILES, HARD))]
