"""Plain triggers of scripts: ``POST /jobinfo/trigger`` with the cookie of a login."""

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from sqlalchemy.orm import Session

from app.clock import now_ms
from app.domain.access.permissions import Actor
from app.fast_triggers.middleware import Answer, Kind, has_plain_body
from app.runtime.environ import PASSED
from app.runtime.logging import request_id
from app.services.jobs.plain_triggers import PlainTrigger, is_storable, trigger_plain

PATH = "/jobinfo/trigger"
FORM_TYPE = "application/x-www-form-urlencoded"
_ID = re.compile(r"[1-9][0-9]{0,8}")
_FIELDS = frozenset({"id", "executorParam", "addressList"})
#: headers of browsers, from which the gate knows other sites; their requests are not plain
_OF_BROWSERS = ("HTTP_ORIGIN", "HTTP_SEC_FETCH_SITE")
#: what the gate's decision depends on
_CREDENTIALS = ("HTTP_COOKIE", "HTTP_HOST", "REMOTE_ADDR", "wsgi.url_scheme")


class ScriptPass(NamedTuple):
    """The user of a login, and the answer to a trigger."""

    actor: Actor
    answer: Answer


class ScriptTrigger(NamedTuple):
    """A trigger, and its answer."""

    trigger: PlainTrigger
    answer: Answer


class ScriptTriggers(Kind[ScriptPass, ScriptTrigger]):
    """Triggers by the original's JSON endpoint, on any instance of the group."""

    def __init__(self, context_path: str) -> None:
        super().__init__()
        self._path = context_path + PATH

    def serves(self, path: str) -> bool:
        """Return whether it is the path of the JSON endpoint."""
        return path == self._path

    def key_of(self, environ: dict[str, Any]) -> Hashable | None:
        """Return cookie, host, address and scheme of a plain request of a script."""
        if not has_plain_body(environ, FORM_TYPE) or any(name in environ for name in _OF_BROWSERS):
            return None
        return tuple(map(environ.get, _CREDENTIALS)) if "HTTP_COOKIE" in environ else None

    def pass_of(self, environ: dict[str, Any], answer: Answer) -> ScriptPass | None:
        """Return the actor that the view has found."""
        actor = environ[PASSED]
        is_plain = answer.status.startswith("200") and not any(
            name.lower() == "set-cookie" for name, _ in answer.headers
        )
        return ScriptPass(actor, answer) if is_plain and isinstance(actor, Actor) else None

    def order_of(self, environ: dict[str, Any], body: bytes, passed: ScriptPass) -> ScriptTrigger | None:
        """Return the trigger of a form with the usual fields and no addresses."""
        try:
            sent = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError:
            return None
        fields = dict(sent)
        param = fields.get("executorParam", "")
        if len(fields) < len(sent) or not fields.keys() <= _FIELDS or fields.get("addressList"):
            return None
        if not _ID.fullmatch(fields.get("id", "")) or not is_storable(param):
            return None
        trigger = PlainTrigger(int(fields["id"]), param, passed.actor, now_ms(), request_id.get())
        return ScriptTrigger(trigger, passed.answer)

    def user_of(self, order: ScriptTrigger) -> str:
        """Return the user's name."""
        return order.trigger.actor.username

    def carry_out(self, session: Session, orders: Sequence[ScriptTrigger]) -> list[Answer | None]:
        """Queue the runs."""
        queued = trigger_plain(session, [order.trigger for order in orders])
        return [order.answer if run else None for order, run in zip(orders, queued, strict=True)]
