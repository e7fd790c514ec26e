"""Stored variables and secrets: names, limits, and which groups may use a secret.

A name is ``letter {letter | digit | "_"}``. A variable or secret of a group goes before one of the
installation. A secret of the installation may be used by the groups that it names, and by no other.
"""

import json
import re
from collections.abc import Collection, Iterable

from app.clock import DAY_MS, Millis
from app.domain.text.limits import SECRET_MIN, limited_text
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: group id of variables and secrets of the installation
INSTALLATION = 0
#: characters of a name, and of the value of a variable or secret
NAME_MAX, VALUE_MAX = 64, 10_000
#: groups that may use a secret of the installation; as JSON they fit into the column
ALLOWED_MAX = 150
#: variables and secrets of a group, or of the installation
VARIABLES_MAX = 1_000
#: former values kept of a variable, and of a secret, each of which is looked for in texts of executors
VERSIONS_KEPT, SECRETS_KEPT = 5, 500
#: how long a former value of a secret, or of anything deleted, is kept; so long it is masked in logs
KEPT_MS: Millis = 90 * DAY_MS

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_name(text: str) -> str:
    """Return a name; raises InvalidInput."""
    name = text.strip()
    if not name:
        raise InvalidInput("name", N_("Enter a name"))
    if len(name) > NAME_MAX:
        limited_text("name", name, NAME_MAX)
    if not _NAME.fullmatch(name):
        raise InvalidInput("name", N_("A name begins with a letter A-Z or a-z; letters, digits and _ follow"))
    return name


def check_value(text: str) -> str:
    """Return the value of a variable, which may be empty; raises InvalidInput."""
    return limited_text("value", text, VALUE_MAX)


def check_secret(text: str) -> str:
    """Return the value of a secret; raises InvalidInput, whose text has nothing of the value."""
    if len(text) < SECRET_MIN or not text.strip():
        raise InvalidInput("secret", N_("A secret must have at least %(limit)s characters", limit=SECRET_MIN))
    return limited_text("secret", text, VALUE_MAX)


def check_allowed(group_ids: Collection[int], *, is_secret: bool, group_id: int) -> list[int]:
    """Return the groups that may use a secret of the installation, in order; raises InvalidInput."""
    if group_ids and (group_id != INSTALLATION or not is_secret):
        raise InvalidInput("allowed", N_("Only a secret of the installation names the executors that use it"))
    if len(group_ids) > ALLOWED_MAX:
        raise InvalidInput("allowed", N_("At most %(limit)s can be chosen", limit=ALLOWED_MAX))
    return sorted(set(group_ids))


def allowed_text(group_ids: Iterable[int]) -> str:
    """Return a list of groups as it is stored."""
    return json.dumps(sorted(group_ids), separators=(",", ":"))


def allowed_ids(text: str) -> frozenset[int]:
    """Return the groups of a stored list; of one that is not readable none."""
    try:
        ids = json.loads(text)
    except ValueError:
        return frozenset()
    return frozenset(item for item in ids if type(item) is int) if isinstance(ids, list) else frozenset()


def may_use_secret(group_id: int, *, owner_id: int, group_list: str) -> bool:
    """Whether jobs of a group may use a secret: one of the group, or of the installation that names it."""
    return owner_id == group_id or (owner_id == INSTALLATION and group_id in allowed_ids(group_list))


def placeholder(name: str, *, is_secret: bool) -> str:
    """Return how a parameter names a variable or secret: ``${var.NAME}``."""
    return f"${{{'secret' if is_secret else 'var'}.{name}}}"
