"""Rows of the tables of known holes in docs/reference/security.md, and what their attacks share.

A test is named after its row: ``test_`` and the row's slug, and a few words more if a row has several tests.
"""

import re
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "security.md"
#: modules with the attacks
MODULES = ("test_cves", "test_complaints", "test_machine_complaints", "test_server_complaints")
#: row -> why it cannot be attacked here
NOT_APPLICABLE = {
    "CVE-2023-45146": "XXL-RPC is no part of this project; Hessian bodies are sent under 'Hessian on /api'",
    "dependencies": "Java libraries that this project does not have; its own are pinned by hash",
    "Login without TLS": "TLS is the proxy's; beyond loopback the console warns at its start without one",
    "Non-constant-time token compare": "HTTP is too noisy to measure it; tokens are compared by their digests"
    " with hmac.compare_digest (app/api/tokens.py, executor_client/service/endpoints.py)",
}
MARKUP = "<img src=x onerror=alert(1)>"
#: headers of a request that another site made a browser send
CROSS_SITE = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Origin": "http://127.0.0.1:9"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": ""},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1"},
)
BEAN = {
    "jobDesc": "taken over",
    "author": "eve",
    "scheduleType": "NONE",
    "misfireStrategy": "DO_NOTHING",
    "executorRouteStrategy": "FIRST",
    "executorBlockStrategy": "SERIAL_EXECUTION",
    "executorHandler": "evil",
    "glueType": "BEAN",
}
NEW_ADMIN = {"username": "mallory", "password": "long-enough-77", "role": "1"}
#: what users who may not see a job or run are answered
MISSING = {"Job id is invalid", "Log id is invalid"}
_ROW = re.compile(r"^\| ([^|]+) \|", re.MULTILINE)


def rows() -> list[str]:
    """Return the first column of the two tables, without emphasis."""
    tables = REFERENCE.read_text(encoding="utf-8").partition("## 4. Known holes of the original")[2]
    found = [text.strip().strip("*") for text in _ROW.findall(tables)]
    return [text for text in found if text not in ("Id", "Name")]


def slug(row: str) -> str:
    """``Cookie sessions never end`` -> ``cookie_sessions_never_end``; text in parentheses is left out."""
    words = re.sub(r"\([^)]*\)", " ", row).lower()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def row_of(test: str, known: list[str]) -> str | None:
    """Return the row a test is named after, or None."""
    matching = [row for row in known if f"{test}_".startswith(f"test_{slug(row)}_")]
    return max(matching, key=len, default=None)


def unchanged(before: dict[str, Any], row: Any) -> bool:
    """Whether a row still has the values of an earlier ``vars`` of it."""
    return all(getattr(row, name) == value for name, value in before.items() if not name.startswith("_"))


def is_at_login(response: Any) -> bool:
    """Whether an answer leads to the login page."""
    return response.status_code == 302 and response.headers["Location"].endswith("/toLogin")
