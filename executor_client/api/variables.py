"""Stored variables and secrets: find, list, set and delete them by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from executor_client.api.client import ApiClient
from executor_client.api.errors import UnknownName
from executor_client.api.session import Item
from executor_client.api.transport import Request

#: id that filters of the API take for the installation
INSTALLATION = 0


@dataclass(frozen=True)
class Variable:
    """A variable or secret as it was when it was read; the value of a secret is never returned."""

    id: int
    name: str
    #: AppName of its executor group; empty: of the installation
    group: str
    #: None: a secret
    value: str | None
    version: int
    #: everything that the API returned, with its names
    data: Item = field(repr=False, compare=False)

    @property
    def is_secret(self) -> bool:
        """Whether it is a secret."""
        return self.value is None

    @classmethod
    def of(cls, item: Item, names: Mapping[int, str]) -> "Variable":
        """Return the variable of an answer; ``names``: id -> AppName."""
        group = names.get(item["group_id"] or INSTALLATION, "")
        return cls(item["id"], item["name"], group, item["value"], item["version"], item)


def list_variables(client: ApiClient, group_id: int | None = None) -> Iterator[Item]:
    """Yield variables and secrets: of a group, of the installation, or, with None, all."""
    return client.items("/variables", {} if group_id is None else {"group_id": group_id})


def find_variable(client: ApiClient, name: str, group_id: int) -> Item | None:
    """Return the variable or secret of a name; None: there is none that the token may see."""
    query: dict[str, str | int] = {"name": name, "group_id": group_id}
    return next((item for item in client.items("/variables", query) if item["name"] == name), None)


def set_variable(
    client: ApiClient,
    name: str,
    group_id: int,
    *,
    value: str | None = None,
    secret: str | None = None,
    allowed: Sequence[int] | None = None,
) -> Item:
    """Add a variable or secret, or change the one of this name; return it, a secret without its value."""
    members = {"value": value, "secret": secret, "allowed": None if allowed is None else [*allowed]}
    body = {member: content for member, content in members.items() if content is not None}
    current = find_variable(client, name, group_id)
    if current is not None:
        return client.call(Request("PATCH", f"/variables/{current['id']}", body=body))
    return client.call(
        Request("POST", "/variables", body={"name": name, "group_id": group_id or None, **body})
    )


def delete_variable(client: ApiClient, name: str, group_id: int) -> Item:
    """Delete a variable or secret and return what it was; raise UnknownName."""
    current = find_variable(client, name, group_id)
    if current is None:
        raise UnknownName(f"there is no variable or secret {name} there that the token may see")
    client.write("DELETE", f"/variables/{current['id']}")
    return current
