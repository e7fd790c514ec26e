"""Stored passwords: what their texts say, without the password.

``first:$argon2id$…`` must be changed at the next login. ``md5:$argon2id$…`` and ``sha256:$argon2id$…`` wrap
a hash of an adopted database until its user logs in. A bare MD5 or SHA-256 in hex is kept while a Java admin
shares the database.
"""

import re

FIRST_PREFIX = "first:"
MD5_PREFIX = "md5:"
SHA256_PREFIX = "sha256:"
#: hex digits of an MD5 and of a SHA-256
BARE_LENGTHS = (32, 64)
#: stored for users of the OpenID provider: matches no password
UNUSABLE = "sign-on"


def must_change(hash_text: str) -> bool:
    """Whether the password must be changed at the next login."""
    return hash_text.startswith(FIRST_PREFIX)


def is_bare(hash_text: str) -> bool:
    """Whether this is an unsalted hash of an adopted database."""
    return re.fullmatch(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{64}", hash_text) is not None


def is_adopted(hash_text: str) -> bool:
    """Whether a hash comes from an adopted database, bare or wrapped: no rule for passwords applied then."""
    return is_bare(hash_text) or hash_text.startswith((MD5_PREFIX, SHA256_PREFIX))
