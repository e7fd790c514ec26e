"""Hints for expressions that are refused: what other programs take, and characters that no one sees."""

import re
import unicodedata
from typing import Final

from app.domain.text.texts import N_, Text

#: names of other programs' expressions, in five fields
_NAMES: Final = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}
_ZONE: Final = re.compile(r"\s*(?:CRON_)?TZ=(\S*)\s*", re.IGNORECASE)
#: what separates fields
_BLANKS: Final = " \t"


def find_hint(expression: str) -> Text | None:
    """Return what would be right instead of a refused expression; None: the refusal says it."""
    zone = _ZONE.match(expression)
    if zone is not None:
        return N_(
            "set %(zone)s as time zone of the job, and leave only %(cron)s here",
            zone=zone[1],
            cron=expression[zone.end() :],
        )
    cron = _NAMES.get(expression.strip().upper())
    if cron is not None:
        return N_("use %(cron)s", cron=cron)
    for character in expression:
        if character not in _BLANKS and unicodedata.category(character)[0] in "CZ":
            return N_(
                "it contains the invisible character %(code)s; only blanks may separate the fields",
                code=f"U+{ord(character):04X}",
            )
    return None
