"""Plain triggers of API v1: ``POST /api/v1/jobs/7/runs`` with a token, perhaps with an Idempotency-Key."""

import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy.orm import Session

from app.api.v1.mount import PATH as API
from app.clock import Millis, now_ms
from app.fast_triggers.middleware import Answer, Headers, Kind, has_plain_body
from app.runtime.environ import PASSED
from app.runtime.logging import request_id
from app.services.jobs.plain_triggers import PlainTrigger, is_storable, trigger_plain
from app.store.nodes import idempotency

if TYPE_CHECKING:
    from app.api.v1.idempotency import Key
    from app.api.v1.plain_calls import PlainCall

JSON_TYPE = "application/json"
_JOB = re.compile(r"/jobs/([1-9][0-9]{0,8})/runs")
_KEY = "HTTP_IDEMPOTENCY_KEY"
#: headers that are made for each answer
_OWN_HEADERS = ("location", "content-length")


class TokenPass(NamedTuple):
    """The caller, and the headers that all answers have."""

    call: "PlainCall"
    headers: Headers


class TokenTrigger(NamedTuple):
    """A trigger, the key of its request, and the headers of its answer."""

    trigger: PlainTrigger
    key: "Key | None"
    headers: Headers


class TokenTriggers(Kind[TokenPass, TokenTrigger]):
    """Triggers over the API that are due now, on any instance of the group."""

    def __init__(self, context_path: str) -> None:
        super().__init__()
        self._root = context_path + API

    def serves(self, path: str) -> bool:
        """Return whether it is the path of a job's runs."""
        return path.startswith(self._root) and _JOB.fullmatch(path, len(self._root)) is not None

    def key_of(self, environ: dict[str, Any]) -> Hashable | None:
        """Return token and address of a plain request."""
        token = environ.get("HTTP_AUTHORIZATION")
        if "HTTP_IF_MATCH" in environ or not has_plain_body(environ, JSON_TYPE):
            return None
        return (token, environ.get("REMOTE_ADDR")) if token else None

    def pass_of(self, environ: dict[str, Any], answer: Answer) -> TokenPass | None:
        """Return the caller that the API has found, unless the answer is one given before."""
        from app.api.v1.idempotency import REPEATED  # loaded by now: the API has answered

        headers = [(name, text) for name, text in answer.headers if name.lower() not in _OWN_HEADERS]
        is_plain = answer.status.startswith("202") and all(name != REPEATED for name, _ in headers)
        return TokenPass(environ[PASSED], headers) if is_plain else None

    def order_of(self, environ: dict[str, Any], body: bytes, passed: TokenPass) -> TokenTrigger | None:
        """Return the trigger, unless its token has expired or has made too many requests."""
        from app.api.v1.plain_calls import read_plain  # loaded by now: there is a pass

        path = environ["PATH_INFO"].removeprefix(self._root)
        asked, text, key = read_plain(body), environ.get(_KEY), None
        if asked is None or not is_storable(asked.param):
            return None
        if text is not None and (key := passed.call.key_of(text, path, body)) is None:
            return None
        at_ms = now_ms()
        if not passed.call.goes_on(at_ms):
            return None
        found = _JOB.fullmatch(path)
        assert found is not None
        caller = passed.call.caller
        trigger = PlainTrigger(int(found[1]), asked.param, caller.actor, at_ms, request_id.get())
        return TokenTrigger(trigger, key, passed.headers)

    def user_of(self, order: TokenTrigger) -> str:
        """Return the user's name, of a service token its own."""
        return order.trigger.actor.username

    def carry_out(self, session: Session, orders: Sequence[TokenTrigger]) -> list[Answer | None]:
        """Queue the runs, and keep the answers to requests with a key; fails if one of the keys is known."""
        from app.api.v1.plain_calls import answer_of  # as above

        queued = trigger_plain(session, [order.trigger for order in orders])
        answers, rows = list[Answer | None](), list[dict[str, Any]]()
        for order, run in zip(orders, queued, strict=True):
            if run is None:
                answers.append(None)
                continue
            location, body = f"{self._root}/runs/{run.trigger.id}", answer_of(run)
            own = [("Content-Length", str(len(body))), ("Location", location)]
            answers.append(Answer("202 ACCEPTED", [*order.headers, *own], body))
            if order.key is not None:
                rows.append(_row(order.key, order.trigger.now_ms, location, body))
        idempotency.insert_answered(session, rows)
        return answers


def _row(key: "Key", now_ms: Millis, location: str, body: bytes) -> dict[str, Any]:
    return {
        "key_hash": key.key_hash,
        "request_hash": key.request_hash,
        "created_ms": now_ms,
        "status": 202,
        "location": location,
        "body": body.decode(),
    }
