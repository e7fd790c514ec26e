"""Option ``--local``: the commands over the API on the database of this host, without HTTP and a token."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from app.api.v1.access import LOCAL_ACTOR
from app.api.v1.application import create_api
from app.api.v1.endpoint import Resource
from app.api.v1.resources import resources_at
from app.blobs.stores import archive_of
from app.clock import now_ms
from app.commands.context import one_line_errors, open_database
from app.domain.access.permissions import system_actor
from app.executors.gateway import Gateway
from app.services.executors.callers import Caller
from app.services.installation.nodes import require_same_zone
from app.settings.config import Config
from app.settings.home import access_tokens
from executor_client.api.wsgi import Application, WsgiTransport


@one_line_errors
def open_local() -> WsgiTransport:
    """Return a transport to an API of this process, as an administrator called ``local``.

    Who may read the settings may use it, as they may read the database.
    """
    config = open_database()
    require_same_zone(config, now_ms=now_ms())
    actor = replace(system_actor("local"), via="command line")
    return WsgiTransport(LocalApi(config), environ={LOCAL_ACTOR: actor}, address="this host")


class LocalApi:
    """WSGI application: an API of only the resources that a request needs.

    A command calls few paths, and to import all resources takes longer than the rest of it.
    """

    def __init__(self, config: Config) -> None:
        gateway = Gateway(config.executor_networks)
        self._config = config
        self._executors = Caller(gateway, access_tokens(config), archive=archive_of(config))
        self._applications: dict[Sequence[Resource], Application] = {}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        resources = resources_at(environ["PATH_INFO"], environ["REQUEST_METHOD"])
        if resources not in self._applications:
            self._applications[resources] = create_api(self._config, self._executors, resources)
        return self._applications[resources](environ, start_response)
