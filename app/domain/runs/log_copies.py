"""Copies of texts in the log: cut where its column is narrower than the text, and recognised when cut.

An adopted log may be narrower than the job table. What is sent is never cut, so nothing is sent that is read
from such a copy.
"""

from dataclasses import dataclass

#: end of a copy that is cut
ELLIPSIS = "…"
#: most bytes of a character
CHARACTER_BYTES = 4


@dataclass(frozen=True, slots=True)
class Width:
    """What a column holds at most; both limits apply."""

    characters: int
    octets: int

    def holds(self, text: str) -> bool:
        """Whether a text fits."""
        if len(text) > self.characters:
            return False
        return len(text) * CHARACTER_BYTES <= self.octets or len(text.encode()) <= self.octets

    def copy_of(self, text: str) -> str:
        """Return a text, or its beginning and an ellipsis."""
        if self.holds(text):
            return text
        room = self.octets - len(ELLIPSIS.encode())
        beginning = text[: self.characters - len(ELLIPSIS)].encode()[:room]
        return beginning.decode(errors="ignore") + ELLIPSIS

    def is_cut(self, copy: str) -> bool:
        """Whether a copy is only the beginning of a text: it ends so, and its column is full."""
        return copy.endswith(ELLIPSIS) and (
            len(copy) >= self.characters or len(copy.encode()) > self.octets - CHARACTER_BYTES
        )


#: of a column without a limit
UNLIMITED = Width(2**62, 2**62)
