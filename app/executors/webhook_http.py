"""HTTP client of alarm channels, in place of the module ``requests`` in the plugins of Apprise.

Calls of the plugins then go to no link-local or metadata address, follow no redirect, ignore proxies of the
environment and are limited in time and size. Reasons of refusals are collected for the channel's message.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partialmethod
from typing import Any
from urllib.parse import urlsplit

import requests

from app.compat import set_content
from app.domain.executors.networks import EVERYWHERE
from app.domain.text.texts import N_
from app.executors.guarded_http import ConnectionGuard, DirectSession, guard_session, read_bounded

#: longest call, in seconds, and longest response read, in bytes
TOTAL_S = 15.0
REPLY_MAX = 1024 * 1024
#: characters kept of the reason of a refusal
REASON_MAX = 200
#: services that refuse with the status 200: host -> fields of the answer, 0 if the message was accepted
CODES = {
    "oapi.dingtalk.com": ("errcode",),
    "qyapi.weixin.qq.com": ("errcode",),
    "open.feishu.cn": ("code", "StatusCode"),
    "open.larksuite.com": ("code", "StatusCode"),
}

_refusals: ContextVar[list[str] | None] = ContextVar("refusals", default=None)


@contextmanager
def collected_refusals() -> Iterator[list[str]]:
    """Yield a list that receives the reasons of calls refused inside the block, also by threads it starts."""
    reasons: list[str] = []
    token = _refusals.set(reasons)
    try:
        yield reasons
    finally:
        _refusals.reset(token)


def _refuse(reason: str) -> None:
    reasons = _refusals.get()
    if reasons is not None:
        reasons.append(reason)


class WebhookSession(DirectSession):
    """Session whose requests each have a guard of their own."""

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **options: Any) -> requests.Response:
        """Send one request; raises RequestException."""
        until = time.monotonic() + TOTAL_S
        guard = ConnectionGuard(EVERYWHERE)
        guard_session(self, guard)
        options |= {"allow_redirects": False, "stream": True}
        try:
            with guard.cut_after(TOTAL_S):
                response = super().request(method, url, *args, **options)
                # plugins read the response when the guard has gone
                set_content(response, read_bounded(response, REPLY_MAX, until))
        except OSError:
            if guard.refused_peer:
                _refuse(
                    N_(
                        "%(peer)s is a link-local or metadata address, to which no alarm is sent",
                        peer=guard.refused_peer,
                    )
                )
            raise
        if response.is_redirect:
            _refuse(N_("the channel answered with a redirect, which is not followed"))
        reason = _refusal_in(response)
        if reason:
            _refuse(N_("the channel refused the message: %(reason)s", reason=reason))
        return response


def _refusal_in(response: requests.Response) -> str:
    """Return the code and message of a refusal that the status does not show; empty: there is none.

    Plugins of Apprise look at the status only.
    """
    fields = CODES.get(urlsplit(response.url).hostname or "", ())
    try:
        answer = json.loads(response.content) if fields else None
    except ValueError:
        return ""
    if not isinstance(answer, dict):
        return ""
    code = next((answer[field] for field in fields if answer.get(field)), 0)
    message = answer.get("errmsg") or answer.get("msg") or answer.get("StatusMessage") or ""
    return f"{code} {message}".strip()[:REASON_MAX] if code else ""


class WebhookRequests:
    """The names of the module ``requests``; what sends is replaced."""

    Session = session = staticmethod(WebhookSession)

    def __getattr__(self, name: str) -> Any:
        return getattr(requests, name)

    def request(self, method: str, url: str, data: Any = None, **options: Any) -> requests.Response:
        """Send one request; raises RequestException."""
        with WebhookSession() as http:
            return http.request(method, url, data=data, **options)

    get = partialmethod(request, "GET")
    head = partialmethod(request, "HEAD")
    options = partialmethod(request, "OPTIONS")
    post = partialmethod(request, "POST")
    put = partialmethod(request, "PUT")
    patch = partialmethod(request, "PATCH")
    delete = partialmethod(request, "DELETE")


WEBHOOKS = WebhookRequests()
