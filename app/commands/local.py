"""Option ``--local``: the commands over the API on the database of this host, without HTTP and a token."""

from dataclasses import replace

from app.clock import now_ms
from app.commands.context import one_line_errors, open_database
from app.domain.access.permissions import system_actor
from app.services.installation.nodes import require_same_zone
from app.settings.home import access_tokens
from executor_client.api.wsgi import WsgiTransport


@one_line_errors
def open_local() -> WsgiTransport:
    """Return a transport to an API of this process, as an administrator called ``local``.

    Who may read the settings may use it, as they may read the database.
    """
    # They are imported here, because only this option needs them and they take 0.4 s.
    from app.api.v1.access import LOCAL_ACTOR
    from app.api.v1.application import create_api
    from app.blobs.stores import archive_of
    from app.executors.gateway import Gateway
    from app.services.executors.callers import Caller

    config = open_database()
    require_same_zone(config, now_ms=now_ms())
    gateway = Gateway(config.executor_networks)
    api = create_api(config, Caller(gateway, access_tokens(config), archive=archive_of(config)))
    actor = replace(system_actor("local"), via="command line")
    return WsgiTransport(api, environ={LOCAL_ACTOR: actor}, address="this host")
