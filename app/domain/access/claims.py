"""Claims of an OpenID provider: the values of one, and the rights they grant."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.domain.access.permissions import Right, parse_rights
from app.settings.oidc import ALL_GROUPS, Grant


def claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim, or the one a dotted path such as ``realm_access.roles`` leads to; None if missing."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def claim_values(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """Return the texts of a claim, which is a text or a list of texts."""
    claim_value = claim(claims, name)
    values = claim_value if isinstance(claim_value, list) else [claim_value]
    return frozenset(value for value in values if isinstance(value, str) and value)


def printable(text: str, *, limit: int) -> str:
    """Return a text of the provider that can be stored and shown: cut, with all other characters replaced."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text[:limit])


def granted_rights(
    values: frozenset[str], grants: Iterable[Grant], app_names: Mapping[int, str]
) -> dict[int, frozenset[Right]]:
    """Return the rights per group id that the values grant; ``app_names`` are those of all groups by id."""
    rights_by_group: dict[int, frozenset[Right]] = {}
    for grant in grants:
        if grant.value not in values:
            continue
        for group_id, app_name in app_names.items():
            if grant.app_name in (ALL_GROUPS, app_name):
                rights_by_group[group_id] = rights_by_group.get(group_id, frozenset()) | parse_rights(
                    ",".join(grant.rights)
                )
    return rights_by_group
