"""docs/reference/api.md is what the document of the API says."""

import json

from app.api.v1.application import document_json
from tests.documented.api_reference import PAGE, page_of


def test_the_reference_is_up_to_date() -> None:
    current = page_of(json.loads(document_json()))
    assert PAGE.read_text(encoding="utf-8") == current, "run: python3 manage.py reference"
