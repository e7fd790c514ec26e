"""Account: login, own settings and sessions, start page."""

from app.console.account import login, pages, start_page

MODULES = (
    login,
    pages,
    start_page,
)
