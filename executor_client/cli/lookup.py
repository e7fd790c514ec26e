"""Objects named on the command line: by id, or by a name that is unique."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from executor_client.api.client import ApiClient
from executor_client.api.error_messages import EXIT_USAGE
from executor_client.api.errors import NotFound
from executor_client.api.lookup import jobs_named
from executor_client.api.session import Item
from executor_client.cli.invocation import Stop

#: candidates that are listed
MOST = 20


def find_job(client: ApiClient, word: str) -> Item:
    """Return the job with an id, or the only one with a description or handler; raise Stop."""
    if _is_id(word):
        with named("job", word):
            return client.job(int(word))
    found = jobs_named(client, word)
    return _only(
        "job", word, found, [f"{job['id']}  {job['description']} ({job['handler']})" for job in found]
    )


def find_group(client: ApiClient, word: str) -> Item:
    """Return the executor group with an id, an AppName or a title; raise Stop."""
    if _is_id(word):
        with named("executor group", word):
            return client.group(int(word))
    found = [group for group in client.groups() if word in (group["app_name"], group["title"])]
    lines = [f"{group['id']}  {group['app_name']} ({group['title']})" for group in found]
    return _only("executor group", word, found, lines)


def find_user(client: ApiClient, username: str) -> Item:
    """Return the user of a name; raise Stop."""
    found = [user for user in client.users({"username": username}) if user["username"] == username]
    return _only("user", username, found, [str(user["id"]) for user in found])


@contextmanager
def named(kind: str, word: str) -> Iterator[None]:
    """Name the object of a command if the API does not find it; an empty name is not asked for."""
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


def _only(kind: str, word: str, found: Sequence[Item], lines: Iterable[str]) -> Item:
    _check_name(kind, word)
    if not found:
        raise Stop(f"there is no {kind} {word} that you may see")
    if len(found) > 1:
        shown = [f"  {line}" for line in lines][:MOST]
        more = [f"  … and {len(found) - MOST} more"] if len(found) > MOST else []
        head = f"{len(found)} {kind}s have the name {word}; give the id of one:"
        raise Stop("\n".join([head, *shown, *more]), EXIT_USAGE)
    return found[0]
