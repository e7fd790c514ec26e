"""Sealed tokens: the tokens of groups in the database can be read, and none is stored in plain."""

import logging

from sqlalchemy.orm import Session

from app.database.engine import read_scope, transact
from app.errors import NotConfigured
from app.settings.config import Config
from app.settings.home import SECRET_KEY_FILE
from app.settings.sealing import CannotUnseal, is_sealed, sealer
from app.store.alarms import channels
from app.store.executors import groups
from app.store.nodes import nodes
from app.store.variables import values

logger = logging.getLogger(__name__)


def place_of_key(config: Config) -> str:
    """Return where the application key of this node comes from, for messages."""
    return "XXL_JOB_SECRET_KEY" if config.secret_key else str(config.home / SECRET_KEY_FILE)


def check(config: Config) -> None:
    """Raise NotConfigured if a stored token, channel or secret was sealed with another application key."""
    with read_scope() as session:
        secrets = [
            (f"the access token of the executor group {token.app_name}", token.text)
            for token in groups.find_stored_tokens(session)
        ]
        secrets += [
            (f"the alarm channel {name}", secret)
            for name, secret in channels.find_stored_settings(session).items()
        ]
        secrets += [(f"the secret {name}", secret) for name, secret in values.find_all_sealed(session)]
    for owner, secret in secrets:
        try:
            sealer().unseal(secret)
        except CannotUnseal as exc:
            raise NotConfigured(
                f"{place_of_key(config)}: {owner}"
                " was encrypted with another application key; restore the file secret_key that belongs"
                " to this database, or set XXL_JOB_SECRET_KEY to its content (docs/reference/operations.md)"
            ) from exc


def seal_plain() -> int:
    """Seal the tokens that an older version stored in plain, and delete its fingerprints; return how many.

    After ``check``, so that no token is sealed with a key the others cannot be read with.
    """
    count = transact(_seal_plain)
    if count:
        logger.warning("tokens of executor groups encrypted count=%s", count)
    return count


def _seal_plain(session: Session) -> int:
    nodes.clear_plain_fingerprints(session)
    plain = [token for token in groups.find_stored_tokens(session) if not is_sealed(token.text)]
    return sum(groups.replace_stored_token(session, token, sealer().seal(token.text)) for token in plain)
