"""Search field of the list of variables: filters that can be typed, and a name."""

from collections.abc import Sequence

from app.console.ui.lists.search import (
    Changes,
    Hint,
    Search,
    SearchField,
    choice_field,
    executor_field,
    read_names,
    text_field,
)
from app.console.web.language import _
from app.domain.jobs.variables import INSTALLATION
from app.domain.lists.search_text import Term
from app.models.group import Group


def read_variable_search(text: str, groups: Sequence[Group]) -> Search:
    """Return what a text means to a reader who sees these groups."""
    kinds = {"variable": _("Variables"), "secret": _("Secrets")}
    words = {"variable": ("variable",), "secret": ("secret",)}
    fields = (
        _owner_field(groups),
        choice_field("kind", ("kind", _("Kind")), kinds, aliases=words),
        text_field("name", "name", _("Name")),
    )
    return read_names(text, fields, "name")


def _owner_field(groups: Sequence[Group]) -> SearchField:
    """Return the filter by executor, which may be the installation."""
    field = executor_field(groups, "group")

    def read(term: Term) -> Changes | Hint:
        if term.value.casefold() in {"installation", _("Installation").casefold()}:
            return {"group": str(INSTALLATION)}
        return field.read(term)

    return SearchField(field.words, read)
