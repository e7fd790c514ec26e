"""List of common passwords, unpacked by ``manage.py setup`` beside the browser's files."""

import functools
import gzip
from pathlib import Path

from app.errors import NotConfigured

FILE = Path(__file__).resolve().parent.parent.parent / "data" / "common-passwords.txt.gz"
SETUP_COMMAND = "python3 manage.py setup"


@functools.cache
def common_passwords() -> frozenset[str]:
    """Return the common passwords in lower case, read once; raises NotConfigured without the file."""
    try:
        with gzip.open(FILE, "rt", encoding="utf-8") as stream:
            return frozenset(line.strip().lower() for line in stream) - {""}
    except (OSError, EOFError, UnicodeDecodeError) as exc:
        raise NotConfigured(
            f"the list of common passwords cannot be read ({FILE}); run: {SETUP_COMMAND}"
        ) from exc
