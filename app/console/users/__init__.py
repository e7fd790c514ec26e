"""Users: administration, logins, audit."""

from app.console.users import pages, weak_passwords

MODULES = (pages, weak_passwords)
