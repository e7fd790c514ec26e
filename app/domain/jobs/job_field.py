"""Job field: kind, limits and texts of an attribute of jobs; the attributes are in ``fields``."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

INT_MAX = 2**31 - 1
#: most digits of a number in the form
DIGITS_MAX = 9


class Kind(StrEnum):
    """Kind of value of a job field."""

    TEXT = "text"
    #: one value of an enum
    CHOICE = "choice"
    #: a whole number
    NUMBER = "number"
    #: UTC epoch milliseconds; 0: open
    INSTANT = "instant"
    #: 1 or 0; true or false in JSON
    BOOLEAN = "boolean"
    #: JSON text of a model, of pydantic; an object or list in JSON
    STRUCTURE = "structure"


@dataclass(frozen=True, slots=True)
class JobField:
    """Job field: an attribute that users set, with its names and limits."""

    kind: Kind
    #: name in the JSON endpoints and in errors; empty: in neither
    wire_name: str
    #: name in the model, the draft and the form
    attribute: str = ""
    default: Any = ""
    #: label and hint in the form
    label: str = ""
    hint: str = ""
    #: folded section of the form at whose end it stands; empty: the form itself places it
    section: str = ""
    #: takes the full width of the form
    is_wide: bool = False
    #: column of XXL-JOB itself; a script that omits any other field in an update leaves its value unchanged
    is_original: bool = True
    has_own_rules: bool = False
    #: of a text: longest value; 0: unlimited
    max_length: int = 0
    #: of a text: leading and trailing blanks are kept
    keeps_blanks: bool = False
    #: of a text: may span several lines
    is_multiline: bool = False
    #: of a text: the error when it is empty; empty: optional
    missing: str = ""
    #: of a choice: its values, and the error for any other
    choices: type[StrEnum] = StrEnum
    invalid: str = ""
    #: of a structure: returns its type for pydantic, which takes a while to import
    model: Callable[[], Any] = object
    #: of a number: its range
    low: int = 0
    high: int = INT_MAX
    #: of a number: a negative one is stored as 0
    negative_is_zero: bool = False

    @property
    def error_name(self) -> str:
        """Name in errors: that of the original's forms, if it has one."""
        return self.wire_name or self.attribute

    @property
    def is_required(self) -> bool:
        """Whether an empty value is refused."""
        return bool(self.missing)

    def allows(self, value: Any) -> bool:
        """Return whether a value lies within the limits; one that another program stored may not."""
        if self.kind is Kind.TEXT:
            return not self.max_length or len(value) <= self.max_length
        if self.kind is Kind.CHOICE:
            return value in list(self.choices)
        return self.kind is not Kind.NUMBER or self.low <= value <= self.high

    @property
    def input_length(self) -> int:
        """Maximum length of the form input."""
        return min(len(str(self.high)), DIGITS_MAX) if self.kind is Kind.NUMBER else self.max_length
