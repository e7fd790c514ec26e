"""Search field of the job list: its text as filters of the URL, and hints on what it cannot mean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.console.web.language import _
from app.domain.lists.filters import VALUE_MAX
from app.domain.lists.job_search import CodeState, LastRun, Term, free_text, split_search
from app.models.group import Group
from app.store.base.paging import to_id

#: most executors that a hint names
NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Search:
    """Text of the search field: the URL parameters that its terms stand for, and what is wrong in it."""

    parameters: Mapping[str, str]
    #: the terms without a word before a colon
    text: str
    hints: Sequence[str]


def read_search(text: str, groups: Sequence[Group]) -> Search:
    """Return what a text means to a reader who sees these executor groups."""
    terms = split_search(text)
    parameters, hints = dict[str, str](), list[str]()
    names = _parameter_names()
    for term in terms:
        if not term.word:
            continue
        name = names.get(term.word.casefold(), "")
        value, hint = _value_of(name, term, groups)
        if hint:
            hints.append(hint)
        else:
            parameters[name] = value[:VALUE_MAX]
    return Search(parameters, free_text(terms), hints)


def _parameter_names() -> dict[str, str]:
    """Return word before a colon -> URL parameter: in English, and as the columns are called."""
    words = {
        "jobGroup": ("executor", "group", "appname", _("Executor")),
        "tag": ("tag", _("Tag")),
        "author": ("owner", "author", _("Owner")),
        "executorHandler": ("handler", "jobhandler"),
        "jobDesc": ("description", "name", _("Job description")),
        "triggerStatus": ("status", "schedule", _("Status"), _("Schedule")),
        "last": ("last", _("Last run")),
        "code": ("code", _("Code")),
    }
    return {word.casefold(): name for name, names in words.items() for word in names}


def _value_of(name: str, term: Term, groups: Sequence[Group]) -> tuple[str, str]:
    """Return the value of a URL parameter for a term, or a hint on what would be right."""
    known: dict[str, Callable[[], dict[str, str]]] = {
        "triggerStatus": status_values,
        "last": last_values,
        "code": code_values,
    }
    if not name:
        return "", _(
            "There is no filter “%(word)s:”. There are executor, tag, owner, handler, status, last and code. "
            "To search for the text itself, put it in quotes.",
            word=term.word,
        )
    if not term.value:
        return "", _("Enter a value after “%(word)s:”.", word=term.word)
    if name == "jobGroup":
        return _executor(term.value, groups)
    if name not in known:
        return term.value, ""
    values = known[name]()
    value = next((key for key, title in values.items() if term.value.casefold() in _words(key, title)), "")
    if value:
        return value, ""
    choices = ", ".join(str(title).lower() for title in values.values())
    return "", _("“%(word)s:” can be one of: %(choices)s.", word=term.word, choices=choices)


def _words(key: str, title: str) -> set[str]:
    """Return what may be typed for a value: its key, its title, and of a status its English name."""
    return {key, title.casefold(), {"0": "off", "1": "on"}.get(key, key)}


def _executor(text: str, groups: Sequence[Group]) -> tuple[str, str]:
    """Return the id of the group with this title, AppName or id, or the only one whose title has the text."""
    typed = text.casefold()
    exact = [
        group
        for group in groups
        if typed in {group.title.casefold(), group.app_name.casefold()} or group.id == to_id(text)
    ]
    matches = exact or [group for group in groups if typed in f"{group.title}\n{group.app_name}".casefold()]
    if len(matches) == 1:
        return str(matches[0].id), ""
    if not matches:
        return "", _("No executor is called “%(name)s”.", name=text)
    names = ", ".join(group.title for group in matches[:NAMED_MAX]) + (
        ", …" if len(matches) > NAMED_MAX else ""
    )
    return "", _("Several executors match “%(name)s”: %(names)s.", name=text, names=names)


def status_values() -> dict[str, str]:
    """Return value of ``triggerStatus`` -> title."""
    return {"1": _("On"), "0": _("Off")}


def last_values() -> dict[str, str]:
    """Return value of ``last`` -> title."""
    return {
        LastRun.FAILING.value: _("Failing"),
        LastRun.RUNNING.value: _("Running"),
        LastRun.NEVER.value: _("Never ran"),
    }


def code_values() -> dict[str, str]:
    """Return value of ``code`` -> title."""
    return {CodeState.MANAGED.value: _("Managed by code"), CodeState.DRIFTED.value: _("Drifted")}
