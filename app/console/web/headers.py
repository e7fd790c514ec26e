"""Security headers of every response. docs/reference/security.md, sections 2 and P9."""

from flask import Flask, Response, g, request

#: responses a browser may cache
STATIC_ENDPOINTS = frozenset({"static"})
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'{nonce}",
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "object-src 'none'",
)
HSTS = "max-age=31536000"


def init_app(app: Flask) -> None:
    """Add the headers to every response."""
    app.after_request(_add_headers)


def _add_headers(response: Response) -> Response:
    headers = response.headers
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "same-origin"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    headers["X-Frame-Options"] = "DENY"
    headers["Content-Security-Policy"] = content_security_policy()
    if request.endpoint not in STATIC_ENDPOINTS or response.status_code >= 400:
        headers["Cache-Control"] = "no-store"
    if request.is_secure:
        headers["Strict-Transport-Security"] = HSTS
    return response


def content_security_policy() -> str:
    """Return the policy of this response; it has a style nonce only if the page uses one."""
    nonce = f" 'nonce-{g.csp_nonce}'" if "csp_nonce" in g else ""
    return "; ".join(POLICY).format(nonce=nonce)
