"""Compression of answers: pages and JSON above a few hundred bytes, unless they are streamed.

The size of a compressed page that repeats a guess of an attacker can reveal what else is in it (BREACH). The
secret of a page is the token of its forms: each response masks it anew, see ``form_token``.
"""

import gzip
import re

from flask import Flask, Response, request

#: shorter bodies fit into one packet as they are
LEAST_BYTES = 500
#: 300 KB of a list take 4 ms; higher levels save little
LEVEL = 4
TYPES = re.compile(r"text/(?:html|plain|csv|css)|application/(?:json|javascript)|image/svg\+xml")


def init_app(app: Flask) -> None:
    """Compress the answers of an application; call it before other parts add to answers."""
    app.after_request(_compress)


def _compress(response: Response) -> Response:
    if response.is_streamed or response.direct_passthrough or not TYPES.fullmatch(response.mimetype or ""):
        return response
    response.vary.add("Accept-Encoding")
    if response.content_encoding or not request.accept_encodings.quality("gzip"):
        return response
    body = response.get_data()
    if response.status_code >= 200 and len(body) >= LEAST_BYTES:
        response.set_data(gzip.compress(body, LEVEL, mtime=0))
        response.content_encoding = "gzip"
    return response
