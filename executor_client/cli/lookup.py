"""Lookup of objects on the command line: by id, or by a unique name."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from executor_client.api.calls import jobs_named
from executor_client.api.client import ApiClient
from executor_client.api.error_messages import EXIT_USAGE
from executor_client.api.errors import NotFound
from executor_client.api.session import Item
from executor_client.cli.invocation import Stop

#: number of candidates that an error lists
CANDIDATES_MAX = 20


def find_job(client: ApiClient, word: str) -> Item:
    """Return the job with an id, or the only one with a description or handler; raise Stop."""
    if _is_id(word):
        with explain_missing("job", word):
            return client.job(int(word))
    jobs = jobs_named(client, word)
    return _only("job", word, jobs, [f"{job['id']}  {job['description']} ({job['handler']})" for job in jobs])


def find_group(client: ApiClient, word: str) -> Item:
    """Return the executor group with an id, an AppName or a title; raise Stop."""
    if _is_id(word):
        with explain_missing("executor group", word):
            return client.group(int(word))
    groups = [group for group in client.groups() if word in (group["app_name"], group["title"])]
    lines = [f"{group['id']}  {group['app_name']} ({group['title']})" for group in groups]
    return _only("executor group", word, groups, lines)


def find_user(client: ApiClient, username: str) -> Item:
    """Return the user of a name; raise Stop."""
    users = [user for user in client.users({"username": username}) if user["username"] == username]
    return _only("user", username, users, [str(user["id"]) for user in users])


@contextmanager
def explain_missing(kind: str, word: str) -> Iterator[None]:
    """Replace NotFound by an error that names the object; refuse an empty name without a request."""
    _check_name(kind, word)
    try:
        yield
    except NotFound as exc:
        raise Stop(f"there is no {kind} {word} that you may see") from exc


def _is_id(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _check_name(kind: str, word: str) -> None:
    if not word.strip():
        raise Stop(f"the name of the {kind} is empty", EXIT_USAGE)


def _only(kind: str, word: str, items: Sequence[Item], lines: Iterable[str]) -> Item:
    _check_name(kind, word)
    if not items:
        raise Stop(f"there is no {kind} {word} that you may see")
    if len(items) > 1:
        candidates = [f"  {line}" for line in lines][:CANDIDATES_MAX]
        more = [f"  … and {len(items) - CANDIDATES_MAX} more"] if len(items) > CANDIDATES_MAX else []
        head = f"{len(items)} {kind}s have the name {word}; give the id of one:"
        raise Stop("\n".join([head, *candidates, *more]), EXIT_USAGE)
    return items[0]
