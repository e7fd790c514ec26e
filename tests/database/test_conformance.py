"""Every dialect passes the suite of ``conformance.py``."""

import pytest

from tests.database.conformance import CHECKS, Check
from tests.support.plan import every_database

pytestmark = every_database


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_dialect_conforms(database: str, check: Check) -> None:
    check(database)
