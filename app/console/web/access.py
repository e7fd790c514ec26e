"""Access levels of the endpoints; each module states its own in ``POLICY``, beside its routes."""

from enum import StrEnum


class Access(StrEnum):
    """Who may call an endpoint."""

    #: anyone
    PUBLIC = "public"
    #: anyone, under any host name: health checks
    PROBE = "probe"
    #: any logged-in user, also before the first password is changed
    FIRST = "first"
    LOGIN = "login"
    ADMIN = "admin"
    VIEW = "view"
    OPERATE = "operate"
    EDIT = "edit"
    GLUE = "glue"
