"""Browser helpers: read the token of a page, send its form back."""

import re
from html import unescape
from typing import Any

from werkzeug.test import TestResponse

from tests.support.console import Console

TOKEN = re.compile(r'name="csrf_token"\s+value="([0-9a-f]+)"')


def token_of(console: Console) -> str:
    """Return the CSRF token of the forms of this login."""
    found = TOKEN.search(console.get("/help").text)
    assert found is not None
    return found.group(1)


def submit(console: Console, path: str, /, **fields: Any) -> TestResponse:
    """Send a form of the page at ``path`` to its URL."""
    return console.post(path, {"csrf_token": token_of(console), **fields})


def markup_of(response: TestResponse) -> str:
    """Return the source of a page without the whitespace around tags, and with single blanks elsewhere."""
    return re.sub(r"\s*(<[^>]*>)\s*", r"\1", re.sub(r"\s+", " ", response.text))


def text_of(response: TestResponse) -> str:
    """Return the visible text of a page: no tags, whitespace collapsed."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", response.text)))


def is_at_login(response: TestResponse) -> bool:
    """Whether the response redirects to the login page."""
    return response.status_code == 302 and response.headers["Location"].endswith("/toLogin")


def path_after(response: TestResponse) -> str:
    """Return the target of a redirect, without the context path."""
    assert response.status_code == 303, text_of(response)
    return response.headers["Location"].removeprefix("/xxl-job-admin")


def unnamed_path_after(response: TestResponse) -> str:
    """Return the target of a redirect without the parameters that name what a notice is about."""
    return re.sub(r"&(?:at|of|named|mark)=[^&#]*", "", path_after(response))
