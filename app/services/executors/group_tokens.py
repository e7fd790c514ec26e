"""Access tokens of executor groups: checks, and replacement with a changeover."""

from app.clock import Millis
from app.domain.text.limits import limited_text
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.group import Group
from app.settings.config import MIN_TOKEN_LENGTH, REFUSED_TOKENS

TOKEN_MAX = 255
FIELD = "accessToken"


def changed_columns(group: Group, text: str, *, now_ms: Millis) -> dict[str, object]:
    """Return the columns to set for an entered token; empty: the group uses the global token from now on.

    A replaced token stays valid until an administrator ends the changeover. During it only the former token
    can be entered, which takes the change back. Raises InvalidInput.
    """
    token = _valid_token(text.strip())
    if not token:
        return {"access_token": None, "former_token": None, "changeover_ms": 0}
    if token == group.access_token or not group.access_token:
        return {"access_token": token}
    if group.former_token and token != group.former_token:
        raise InvalidInput(FIELD, N_("The access token is being replaced already: end the changeover first"))
    since_ms = group.changeover_ms if group.former_token else now_ms
    return {"access_token": token, "former_token": group.access_token, "changeover_ms": since_ms}


def _valid_token(token: str) -> str:
    if not token:
        return ""
    if len(token) < MIN_TOKEN_LENGTH or token in REFUSED_TOKENS:
        raise InvalidInput(
            FIELD, N_("The access token must have at least %(low)s characters", low=MIN_TOKEN_LENGTH)
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(FIELD, N_("The access token must be printable ASCII without spaces"))
    return limited_text(FIELD, token, TOKEN_MAX)
