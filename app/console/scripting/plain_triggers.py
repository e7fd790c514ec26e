"""Plain triggers: ``POST /jobinfo/trigger`` of scripts, in front of Flask.

A view costs a trigger several times what it does in the database. Here one transaction reads the logins of
all requests that wait, and queues their runs. Nothing is refused here: what is not plain, or not allowed,
goes on to the view, which knows the reasons.
"""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from flask import Flask
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.console.web.current import OUTSIDE, PLAIN_HOST, login_tokens
from app.console.web.envelope import envelope
from app.console.web.guards import host_name, names_of
from app.database.batch_writer import BatchWriter
from app.domain.access.permissions import Actor
from app.domain.enums import ParamForm, WeakPassword
from app.runtime.logging import USER, request_id
from app.services.accounts import login
from app.services.jobs.batch_triggers import BatchEntry, trigger_jobs
from app.services.jobs.jobs import QueuedRun
from app.settings.config import Config

PATH = "/jobinfo/trigger"
FORM = "application/x-www-form-urlencoded"
FIELDS = frozenset({"id", "executorParam", "addressList"})
BODY_MAX = 64 * 1024
#: headers of browsers, and of requests that are more than plain
OTHERS = (
    "HTTP_ORIGIN",
    "HTTP_SEC_FETCH_SITE",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_HX_REQUEST",
    "HTTP_UPGRADE",
)
SCHEMES = frozenset({"http", "https"})


class Caller(NamedTuple):
    """Login of a request."""

    tokens: tuple[str, ...]
    address: str


class PlainTrigger(NamedTuple):
    """What a request asks for."""

    caller: Caller
    run: BatchEntry


class PlainTriggers:
    """WSGI middleware behind the context path."""

    def __init__(self, app: Flask, config: Config) -> None:
        self._app, self._inner = app, app.wsgi_app
        self._names = names_of(config)
        self._writer = BatchWriter("plain triggers")
        #: scheme -> headers and body of the view's answer
        self._answers: dict[str, tuple[list[tuple[str, str]], bytes]] = {}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a plain trigger; pass everything else on."""
        trigger = self._read(environ)
        if trigger is None:
            return self._inner(environ, start_response)
        try:
            username = self._writer.submit(trigger, _queue_runs)
        except Exception as exc:  # It may be done: not repeated, but answered as an error of the view.
            with self._app.request_context(environ):
                answer = self._app.finalize_request(self._app.handle_user_exception(exc))
                return answer(environ, start_response)
        if username is None:
            return self._inner(environ, start_response)
        environ[USER] = username
        headers, body = self._answer(environ)
        start_response("200 OK", list(headers))
        return [body]

    def _read(self, environ: dict[str, Any]) -> PlainTrigger | None:
        is_plain = (
            environ.get("PATH_INFO") == PATH
            and environ.get("REQUEST_METHOD") == "POST"
            and environ.get("CONTENT_TYPE", "").partition(";")[0] == FORM
            and not environ.get("QUERY_STRING")
            and environ["wsgi.url_scheme"] in SCHEMES
            and OUTSIDE not in environ
            and not any(name in environ for name in OTHERS)
        )
        length = environ.get("CONTENT_LENGTH") or ""
        if not is_plain or not re.fullmatch("[0-9]{1,5}", length) or not 0 < int(length) <= BODY_MAX:
            return None
        if not self._is_for_us(environ.get("HTTP_HOST", "")):
            return None
        body = environ["wsgi.input"].read(int(length))
        environ["wsgi.input"] = io.BytesIO(body)
        if len(body) < int(length):  # The client has left before its end.
            return None
        fields, tokens = _fields(body), login_tokens(environ.get("HTTP_COOKIE", ""))
        if not tokens or not re.fullmatch("[0-9]{1,9}", fields.get("id", "")) or fields.get("addressList"):
            return None
        param = fields.get("executorParam", "")
        run = BatchEntry(int(fields["id"]), param, request_id.get(), param_form=ParamForm.TEXT)
        return PlainTrigger(Caller(tuple(tokens), environ.get("REMOTE_ADDR") or ""), run)

    def _is_for_us(self, host: str) -> bool:
        """Whether a ``Host`` header names this console; one that is not plain is left to the view."""
        return self._names is None or (
            PLAIN_HOST.fullmatch(host) is not None and host_name(host) in self._names
        )

    def _answer(self, environ: dict[str, Any]) -> tuple[list[tuple[str, str]], bytes]:
        scheme = environ["wsgi.url_scheme"]
        if scheme not in self._answers:
            with self._app.request_context(environ):
                answer = self._app.process_response(envelope())
                self._answers[scheme] = (answer.get_wsgi_headers(environ).to_wsgi_list(), answer.get_data())
        return self._answers[scheme]


def _fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form; empty if one is unknown, repeated or not readable."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=3)
    except ValueError:
        return {}
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) and fields.keys() <= FIELDS else {}


def _queue_runs(session: Session, triggers: Sequence[PlainTrigger]) -> list[str | None]:
    """Queue runs; return the user of each, None for one that the view decides."""
    at_ms = now_ms()
    usernames: list[str | None] = []
    for caller, of_caller in groupby(triggers, key=lambda trigger: trigger.caller):
        entries, actor = [trigger.run for trigger in of_caller], _actor_of(session, caller, at_ms)
        if actor is None:
            usernames += [None] * len(entries)
            continue
        results = trigger_jobs(session, entries, actor=actor, now_ms=at_ms)
        usernames += [actor.username if isinstance(result, QueuedRun) else None for result in results]
    return usernames


def _actor_of(session: Session, caller: Caller, at_ms: Millis) -> Actor | None:
    """Return the user of a live login that needs nothing else than this request."""
    visitor = login.find_session(session, caller.tokens, address=caller.address, now_ms=at_ms)
    if visitor is None or visitor.must_change or visitor.weak_password != WeakPassword.NO:
        return None
    return None if login.needs_touch(visitor, at_ms) else visitor.actor
