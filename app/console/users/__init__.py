"""Users: administration, logins, audit."""

from app.console.users import pages, tokens, weak_passwords

MODULES = (pages, tokens, weak_passwords)
