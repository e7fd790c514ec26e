"""Helpers of the tests of executor docs, for all that need them."""

import re

from tests.executor_client.process import ROOT

#: the guide, then the reference
PAGES = (ROOT / "docs/executor.md", ROOT / "docs/reference/executor-client.md")
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


README, SNIPPETS = (
    re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for text in ((ROOT / "executor_client" / "README.md").read_text(encoding="utf-8"), TEXT)
)


def snippet(first_words: str, snippets: list[str] = SNIPPETS) -> str:
    (found,) = (text for text in snippets if first_words in text)
    return str(found)
