"""Start-up of the console: lock row, first administrator, one key and access token for all nodes."""

import logging

from sqlalchemy.exc import IntegrityError

from app.clock import Millis, now_ms
from app.database.engine import bound_engine, read_scope, session_scope
from app.domain.access import stored_passwords
from app.domain.access.permissions import system_actor
from app.domain.enums import NodeKind, Role
from app.executors.addresses import refusal
from app.models.user import User
from app.services.accounts import passwords, weak_passwords
from app.services.accounts.password_list import common_passwords
from app.services.auditing import audit
from app.services.installation import demo, nodes, sealed_tokens
from app.services.installation.preconditions import check_schema
from app.services.installation.promotion_leftovers import clear_leftovers
from app.settings.config import Config
from app.settings.home import ADMIN, first_password
from app.store.accounts import users
from app.store.base import locks
from app.store.executors import listing as group_lists

logger = logging.getLogger(__name__)

#: unusable addresses logged at the start, one per line
ADDRESSES_NAMED = 5


def prepare(config: Config) -> None:
    """Check and complete the bound database before the console serves. Raises NotConfigured with one line."""
    common_passwords()
    check_schema(bound_engine())
    clear_leftovers(config)
    with session_scope() as session:
        locks.take_schedule_lock(session)
        if demo.add_sample(session, actor=system_actor("start"), clock=now_ms):
            logger.info("sample group and job created app_name=%s", demo.APP_NAME)
    nodes.start(config, NodeKind.CONSOLE, now_ms=now_ms())
    sealed_tokens.seal_plain()
    ensure_admin(config, now_ms=now_ms())
    weak_passwords.mark_adopted()  # Weak passwords are found before the hashes are wrapped.
    wrap_adopted_hashes(config)
    weak_passwords.warn()
    warn_of_addresses(config)


def ensure_admin(config: Config, *, now_ms: Millis) -> bool:
    """Create the first administrator if there is no user; return whether it was created here."""
    with read_scope() as session:
        if users.count_users(session):
            return False
    is_generated = not config.admin_password
    password_hash = passwords.hash_password(first_password(config), must_change=is_generated)
    try:
        with session_scope() as session:
            if users.count_users(session):
                return False
            user = User(username=ADMIN, password=password_hash, role=Role.ADMIN, permission="")
            session.add(user)
            session.flush()
            audit.record(
                session, "user.add", actor=system_actor("start"), now_ms=now_ms, target=("user", user.id)
            )
    except IntegrityError:  # another console was faster
        return False
    if is_generated:
        logger.warning("first user created name=%s password_file=%s", ADMIN, config.home / "admin_password")
    else:
        logger.warning("first user created name=%s password=XXL_JOB_ADMIN_PASSWORD", ADMIN)
    return True


def wrap_adopted_hashes(config: Config) -> int:
    """Wrap the MD5 and SHA-256 hashes of an adopted database in Argon2id; return how many.

    Does nothing while a Java admin shares the database.
    """
    if config.shared_with_java:
        return 0
    with read_scope() as session:
        bare = {
            user.id: user.password
            for user in users.all_users(session)
            if stored_passwords.is_bare(user.password)
        }
    for user_id, bare_hash in bare.items():
        new_hash = passwords.wrap(bare_hash)
        with session_scope() as session:
            user = users.lock_user(session, user_id)
            if user is not None and user.password == bare_hash:
                user.password = new_hash
    if bare:
        logger.warning("adopted password hashes wrapped count=%s", len(bare))
    return len(bare)


def warn_of_addresses(config: Config) -> None:
    """Log the addresses of adopted groups that are never called, with the reasons; XXL-JOB calls any."""
    with read_scope() as session:
        addresses = [
            (group.app_name, address)
            for group in group_lists.find_visible(session, None)
            for address in group.addresses
        ]
    unusable = [
        (app_name, address, reason)
        for app_name, address in addresses
        if (reason := refusal(address, config.executor_networks))
    ]
    for app_name, address, reason in unusable[:ADDRESSES_NAMED]:
        logger.warning(
            "executor address unusable app_name=%s address=%s reason=%s", app_name, address, reason
        )
    if len(unusable) > ADDRESSES_NAMED:
        logger.warning("executor addresses unusable count=%s", len(unusable))
