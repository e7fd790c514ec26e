"""List of common passwords, unpacked by ``manage.py setup`` beside the browser's files."""

import functools
import gzip
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from app.errors import NotConfigured

FILE = Path(__file__).resolve().parent.parent.parent / "data" / "common-passwords.txt.gz"
SETUP_COMMAND = "python3 manage.py setup"


class _Words(Set[str]):
    """Words kept as the text of a file with one a line: a tenth of the memory of a set."""

    def __init__(self, words: Iterable[str]) -> None:
        distinct_words = sorted(set(words) - {""})
        self._text, self._count = "\n".join(["", *distinct_words, ""]), len(distinct_words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and word != "" and "\n" not in word and f"\n{word}\n" in self._text

    def __iter__(self) -> Iterator[str]:
        return iter(self._text.strip("\n").split("\n"))

    def __len__(self) -> int:
        return self._count

    @classmethod
    def _from_iterable(cls, words: Iterable[str]) -> Set[str]:  # type: ignore[override]
        return frozenset(words)


@functools.cache
def common_passwords() -> Set[str]:
    """Return the common passwords in lower case, read once; raises NotConfigured without the file."""
    try:
        with gzip.open(FILE, "rt", encoding="utf-8") as stream:
            return _Words(line.strip().lower() for line in stream)
    except (OSError, EOFError, UnicodeDecodeError) as exc:
        raise NotConfigured(
            f"the list of common passwords cannot be read ({FILE}); run: {SETUP_COMMAND}"
        ) from exc
