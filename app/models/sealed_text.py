"""Column type of secrets that are stored sealed."""

import logging
import secrets
from typing import Any

from sqlalchemy import Dialect, String, Text, TypeDecorator

from app.settings.sealing import CannotUnseal, sealer

logger = logging.getLogger(__name__)

#: stands for a secret that cannot be read; random and never shown, so that it opens nothing
_UNREADABLE = secrets.token_hex(32)


class SealedText(TypeDecorator[str]):
    """Text sealed with the application key, plain in Python; values from before sealing are read as they are.

    Comparisons in SQL make no sense but with NULL: each sealing of a text differs.
    """

    impl = Text().with_variant(String(255), "sqlite")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Seal a value for the database."""
        return sealer().seal(value) if value else value

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        """Unseal a value from the database; an unreadable one becomes a random secret."""
        if not value:
            return value
        try:
            return sealer().unseal(value)
        except CannotUnseal:  # The row was changed since the start, which refuses such a database.
            logger.error("stored secret unreadable: it was sealed with another application key")
            return _UNREADABLE
