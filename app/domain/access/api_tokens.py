"""API tokens: their form, and their permissions, which are part of their owner's."""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, parse_rights, rights_text

#: what every token begins with, so that secret scanners find it
PREFIX = "xxl_"
#: random bytes of a token, 43 characters in URL-safe Base64
RANDOM_BYTES = 32
#: what only administrators may do, beside the rights on groups
ADMIN = "admin"
#: stored in place of an empty list of groups, which would mean all; no group has this id
NO_GROUP = "0"
_FORM = re.compile(r"xxl_[A-Za-z0-9_-]{43}")
_HINT_LENGTH = len(PREFIX) + 4


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token grants at most."""

    rights: frozenset[Right]
    #: all that administrators may do
    admin: bool = False
    #: None: all groups
    group_ids: frozenset[int] | None = None


def is_well_formed(token: str) -> bool:
    """Whether a text has the form of a token."""
    return _FORM.fullmatch(token) is not None


def token_hash(token: str) -> str:
    """Return the stored form of a token; it needs no slow hash, since a token is as good as a random key."""
    return hashlib.sha256(token.encode()).hexdigest()


def hint_of(token: str) -> str:
    """Return the first characters of a token, by which its holder recognizes it."""
    return token[:_HINT_LENGTH]


def parse_grant(rights: str, group_ids: str | None) -> Grant:
    """Parse the stored columns; unknown words are left out, so that they grant nothing."""
    words = {word.strip() for word in rights.split(",")}
    ids = None if not group_ids else frozenset(_ids(group_ids))
    return Grant(parse_rights(rights), ADMIN in words, ids)


def stored_rights(grant: Grant) -> str:
    """Return the rights as they are stored, in a fixed order."""
    return ",".join(word for word in (rights_text(grant.rights), ADMIN if grant.admin else "") if word)


def stored_groups(grant: Grant) -> str | None:
    """Return the groups as they are stored; None: all."""
    if grant.group_ids is None:
        return None
    return ",".join(str(group_id) for group_id in sorted(grant.group_ids)) or NO_GROUP


def limit_actor(
    owner: Actor, grant: Grant, *, existing: Collection[int]
) -> tuple[bool, Mapping[int, frozenset[Right]]]:
    """Return what a token may do: whether all, else its rights by group; never more than its owner may now.

    ``existing`` are the ids of all groups; they are read only for an administrator's token.
    """
    if owner.is_admin and grant.admin:
        return True, {}
    token_rights = ALL_RIGHTS if grant.admin else grant.rights
    owner_rights = dict.fromkeys(existing, ALL_RIGHTS) if owner.is_admin else owner.rights
    rights_by_group = {
        group_id: rights & token_rights
        for group_id, rights in owner_rights.items()
        if grant.group_ids is None or group_id in grant.group_ids
    }
    return False, {group_id: rights for group_id, rights in rights_by_group.items() if rights}


def _ids(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.isascii() and part.isdigit() and part != NO_GROUP]
