"""Search field of a list: its text as filters of the URL, and hints on what it cannot mean."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from app.console.web.language import _
from app.domain.lists.filters import VALUE_MAX
from app.domain.lists.search_text import Term, free_text, searched_words, split_search
from app.models.group import Group
from app.store.base.paging import to_id

#: most executors that a hint names
NAMED_MAX = 3
_BETWEEN_WORDS = re.compile(r"[\s_-]+")

#: parameters of the URL with their new values; None removes one
Changes = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Hint:
    """What is wrong in a search text, and what would be right."""

    text: str
    #: title and URL of each object that may be meant
    links: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class SearchField:
    """Filter that is typed as a word before a colon; hints name the first of its words."""

    words: Sequence[str]
    #: its changes of the URL for a term with a value, or why it has none
    read: Callable[[Term], Changes | Hint]


@dataclass(frozen=True, slots=True)
class Search:
    """Text of the search field: the URL parameters that its terms stand for, and what is wrong in it."""

    parameters: Changes
    #: the terms without a word before a colon
    text: str
    hints: Sequence[Hint]


def read_terms(text: str, fields: Sequence[SearchField]) -> Search:
    """Return what a text means in a list with these filters."""
    terms = split_search(text)
    parameters, hints = dict[str, str | None](), list[Hint]()
    for term in terms:
        if not term.word:
            continue
        result = _read_term(term, fields)
        if isinstance(result, Hint):
            hints.append(result)
        else:
            parameters.update(result)
    return Search(parameters, free_text(terms), hints)


def read_names(text: str, fields: Sequence[SearchField], parameter: str) -> Search:
    """Return what a text means in a list of names: its words without a filter are the name."""
    search = read_terms(text, fields)
    name = " ".join(searched_words(search.text))[:VALUE_MAX]
    return Search({**search.parameters, **({parameter: name} if name else {})}, "", search.hints)


def _read_term(term: Term, fields: Sequence[SearchField]) -> Changes | Hint:
    word = term.word.casefold()
    field = next((field for field in fields if word in map(str.casefold, field.words)), None)
    if field is None:
        return Hint(
            _(
                "There is no filter “%(word)s:”. There are: %(names)s. "
                "To search for the text itself, put it in quotes.",
                word=term.word,
                names=", ".join(field.words[0] for field in fields),
            )
        )
    if not term.value:
        return Hint(_("Enter a value after “%(word)s:”.", word=term.word))
    return field.read(term)


def text_field(parameter: str, *words: str) -> SearchField:
    """Return the filter whose value is what is typed."""
    return SearchField(words, lambda term: {parameter: term.value[:VALUE_MAX]})


def choice_field(
    parameter: str,
    words: Sequence[str],
    titles: Mapping[str, str],
    *,
    aliases: Mapping[str, Collection[str]] | None = None,
    removes: Collection[str] = (),
) -> SearchField:
    """Return a filter with few values: value -> title, and the other words that may be typed for one.

    ``removes``: the parameters that do not go with it.
    """

    def read(term: Term) -> Changes | Hint:
        entry = _hyphenate(term.value)
        for value, title in titles.items():
            if entry in {_hyphenate(word) for word in (value, title, *(aliases or {}).get(value, ()))}:
                return {parameter: value, **dict.fromkeys(removes)}
        choices = ", ".join(_hyphenate(title) for title in titles.values())
        return Hint(_("“%(word)s:” can be one of: %(choices)s.", word=term.word, choices=choices))

    return SearchField(words, read)


def _hyphenate(text: str) -> str:
    """Return a value as it is typed without quotes: ``not-started``."""
    return _BETWEEN_WORDS.sub("-", str(text).strip().casefold())


def executor_field(groups: Sequence[Group], parameter: str = "jobGroup") -> SearchField:
    """Return the filter by executor group, for a reader who sees these groups."""

    def read(term: Term) -> Changes | Hint:
        result = _find_executor(term.value, groups)
        return result if isinstance(result, Hint) else {parameter: str(result.id)}

    return SearchField(("executor", "group", "appname", _("Executor")), read)


def _find_executor(text: str, groups: Sequence[Group]) -> Group | Hint:
    """Return the group with this title, AppName or id, or the only one whose title has the text."""
    needle = text.casefold()
    exact = [
        group
        for group in groups
        if needle in {group.title.casefold(), group.app_name.casefold()} or group.id == to_id(text)
    ]
    matches = exact or [group for group in groups if needle in f"{group.title}\n{group.app_name}".casefold()]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        return Hint(_("No executor is called “%(name)s”.", name=text))
    names = ", ".join(group.title for group in matches[:NAMED_MAX]) + (
        ", …" if len(matches) > NAMED_MAX else ""
    )
    return Hint(_("Several executors match “%(name)s”: %(names)s.", name=text, names=names))
