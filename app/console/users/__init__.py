"""Users: administration, logins, audit."""

from app.console.users import pages

MODULES = (pages,)
