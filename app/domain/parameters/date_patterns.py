"""Date patterns: Java's letters (``yyyy-MM-dd``), quoted texts, and anything that is no letter."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from app.domain.parameters.civil_time import Moment
from app.domain.parameters.placeholders import Letters

_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _week(local: datetime) -> int:
    return local.isocalendar().week


def _offset(local: datetime, separator: str) -> str:
    seconds = (local.utcoffset() or timedelta()) // timedelta(seconds=1)
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}{separator}{minutes % 60:02d}"


def _hour_of_12(local: datetime) -> int:
    return local.hour % 12 or 12


_FORMS: Final[Mapping[str, Callable[[Moment], str]]] = {
    "yyyy": lambda at: f"{at.local.year:04d}",
    "yy": lambda at: f"{at.local.year % 100:02d}",
    "M": lambda at: str(at.local.month),
    "MM": lambda at: f"{at.local.month:02d}",
    "MMM": lambda at: _MONTHS[at.local.month - 1][:3],
    "MMMM": lambda at: _MONTHS[at.local.month - 1],
    "d": lambda at: str(at.local.day),
    "dd": lambda at: f"{at.local.day:02d}",
    "D": lambda at: str(at.local.timetuple().tm_yday),
    "H": lambda at: str(at.local.hour),
    "HH": lambda at: f"{at.local.hour:02d}",
    "h": lambda at: str(_hour_of_12(at.local)),
    "hh": lambda at: f"{_hour_of_12(at.local):02d}",
    "a": lambda at: "AM" if at.local.hour < 12 else "PM",
    "m": lambda at: str(at.local.minute),
    "mm": lambda at: f"{at.local.minute:02d}",
    "s": lambda at: str(at.local.second),
    "ss": lambda at: f"{at.local.second:02d}",
    "S": lambda at: str(at.rest_ms // 100),
    "SSS": lambda at: f"{at.rest_ms:03d}",
    "E": lambda at: _DAYS[at.local.weekday()][:3],
    "EEE": lambda at: _DAYS[at.local.weekday()][:3],
    "EEEE": lambda at: _DAYS[at.local.weekday()],
    "u": lambda at: str(at.local.isoweekday()),
    "w": lambda at: str(_week(at.local)),
    "ww": lambda at: f"{_week(at.local):02d}",
    "YYYY": lambda at: f"{at.local.isocalendar().year:04d}",
    "Q": lambda at: str((at.local.month - 1) // 3 + 1),
    "XXX": lambda at: _offset(at.local, ":") if at.local.utcoffset() else "Z",
    "Z": lambda at: _offset(at.local, ""),
}
#: all letters
LETTERS: Final = _FORMS.keys()
#: letters of the year of the week, and those of which one must be beside it
WEEK_YEAR: Final = "YYYY"
WEEKS: Final = frozenset({"w", "ww"})


def is_known(letters: str) -> bool:
    """Whether a run of one letter is one of the language."""
    return letters in _FORMS


def write_moment(moment: Moment, tokens: tuple[Letters | str, ...]) -> str:
    """Return a time as the tokens of a pattern describe it."""
    return "".join([token if isinstance(token, str) else _FORMS[token.text](moment) for token in tokens])
