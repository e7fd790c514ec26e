"""Weak passwords: those of adopted users that are on the list of common passwords.

A user is marked when a password is seen to be common: at a login, or before an adopted MD5 or SHA-256 hash is
wrapped. Pages then lead to the change of the password; scripts still log in until an administrator ends that
grace. A new password, or a login with one that is not common, removes the mark.
"""

import logging
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access import passwords as policy
from app.domain.access import stored_passwords
from app.domain.access.permissions import Actor, require_admin
from app.domain.enums import WeakPassword
from app.domain.text.texts import N_
from app.errors import Conflict
from app.models.user import User
from app.services.accounts import passwords
from app.services.accounts.password_list import common_passwords
from app.services.auditing import audit
from app.store.accounts import users

logger = logging.getLogger(__name__)

REFUSED_TO_SCRIPTS = N_("This is a common password; log in with a browser and change it")
#: users named in the log
NAMED_MAX = 5


def is_common(password: str, username: str) -> bool:
    """Whether a password is on the list or as easily guessed."""
    return policy.is_common(password, username=username, common=common_passwords())


def updated_mark(mark: int, *, is_common: bool) -> WeakPassword:
    """Return a user's mark after a login with a password."""
    return max(WeakPassword(mark), WeakPassword.GRACE) if is_common else WeakPassword.NO


def mark_adopted() -> int:
    """Mark the users whose bare MD5 or SHA-256 hash is that of a listed password; return how many.

    Passwords that differ from a listed one by digits or symbols are only found at a login.
    """
    with read_scope() as session:
        bare = [
            (user.id, user.username, user.password)
            for user in users.all_users(session)
            if stored_passwords.is_bare(user.password) and user.weak_password == WeakPassword.NO
        ]
    if not bare:
        return 0
    words = common_passwords() | policy.PRODUCT_WORDS
    common = {passwords.fast_hash(word, length) for word in words for length in stored_passwords.BARE_LENGTHS}
    weak = {
        user_id: bare_hash
        for user_id, username, bare_hash in bare
        if bare_hash.lower() in common or passwords.fast_hash(username, len(bare_hash)) == bare_hash.lower()
    }
    with session_scope() as session:
        for user_id, bare_hash in weak.items():
            user = users.lock_user(session, user_id)
            if user is not None and user.password == bare_hash:
                user.weak_password = WeakPassword.GRACE
    return len(weak)


def count(session: Session) -> int:
    """Return how many enabled users have a weak password that scripts still log in with."""
    return users.count_weak(session)


def warn() -> None:
    """Log the users whose scripts still log in with a weak password, if there are any."""
    with read_scope() as session:
        names = users.weak_names(session)
    if names:
        logger.warning(
            "users with a common password count=%s names=%s", len(names), ",".join(names[:NAMED_MAX])
        )


def users_with_grace(session: Session, *, actor: Actor) -> list[User]:
    """Return the users whose scripts still log in with a weak password; administrators only."""
    require_admin(actor)
    return users.find_marked(session, WeakPassword.GRACE)


def end_grace(session: Session, user_ids: Sequence[int], *, actor: Actor, now_ms: Millis) -> int:
    """Refuse weak passwords of these users to scripts from now on; return how many.

    Administrators only. Raises Conflict if none of them has a weak password that scripts may still use.
    """
    require_admin(actor)
    entries = []
    for user_id in sorted(user_ids):
        user = users.lock_user(session, user_id)
        if user is not None and user.weak_password == WeakPassword.GRACE:
            user.weak_password = WeakPassword.REFUSED
            entries.append(audit.Entry("user.grace_end", ("user", user_id), {"username": user.username}))
    if not entries:
        raise Conflict(N_("No user has a common password that scripts may still use"))
    audit.record_many(session, entries, actor=actor, now_ms=now_ms)
    return len(entries)
