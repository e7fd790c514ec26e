"""Account: login, own settings and sessions, start page."""

from app.console.account import login, pages, sign_on, start_page, tokens

MODULES = (
    login,
    pages,
    sign_on,
    start_page,
    tokens,
)
