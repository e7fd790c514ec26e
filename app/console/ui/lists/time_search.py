"""Times in the search field of a list: ``period:yesterday from:2024-05-01 to:"2024-05-01 10:00"``."""

from app.console.ui.labels import RANGES
from app.console.ui.lists.ranges import field_text
from app.console.ui.lists.search import Changes, Hint, SearchField, choice_field
from app.console.web.language import _, lazy_pgettext
from app.domain.lists.search_text import Term


def range_fields() -> tuple[SearchField, ...]:
    """Return the filters of ``ranges.requested_range``: by a period, or by its two ends."""
    periods = {name: title for name, title in RANGES.items() if name != "custom"}
    words = ("period", "range", "time", str(lazy_pgettext("run", "Time")), _("Time"))
    return (
        choice_field("range", words, periods, removes=("from", "to")),
        time_field("from", "from", _("From")),
        time_field("to", "to", _("To"), is_end=True),
    )


def time_field(parameter: str, *words: str, is_end: bool = False) -> SearchField:
    """Return the filter by a local time; ``is_end``: a day is its last second."""

    def read(term: Term) -> Changes | Hint:
        text = field_text(term.value, is_end=is_end)
        if not text:
            example = '2024-05-01, "2024-05-01 10:00"'
            return Hint(_("“%(word)s:” is a time, as %(example)s.", word=term.word, example=example))
        return {parameter: text} | ({"range": "custom"} if parameter in ("from", "to") else {})

    return SearchField(words, read)
