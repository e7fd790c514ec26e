"""Endpoints of the API: declarations of operations by resource modules, and the calls of their views.

``Resource("jobs", …)`` collects operations; ``@jobs.get("/jobs/<int:job_id>", answer=JobOut)`` declares one.
The application checks token, right, parameters and body before the view runs, and makes its answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy.orm import Session

from app.api.v1.schemas.base import Query, Schema
from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.services.accounts.api_tokens import ApiCaller
from app.services.executors.callers import Caller
from app.settings.config import Config

SAFE_METHODS = frozenset({"GET", "HEAD"})
#: access to an operation, besides the rights on groups: without a token, any token, an administrator's token
PUBLIC, ANY_TOKEN, ADMIN = "public", "token", "admin"
View = TypeVar("View", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    #: as Flask's rules: ``/jobs/<int:job_id>``
    path: str
    view: Callable[..., Any]
    resource: "Resource"
    #: schema of the answer; None: no content, or ``content_type`` is not JSON
    answer: type[Schema] | None = None
    body: type[BaseModel] | None = None
    query: type[Query] | None = None
    status: int = 200
    #: a ``Right`` on any group, which the services check on the object itself; or one of the words above
    right: str = Right.VIEW.value
    #: whether a GET answers with an ETag, so that changes of the same path take If-Match
    etag: bool = False
    #: False: the view opens its own transactions, because it calls executors, waits or takes long
    transaction: bool = True
    #: slow work before the transaction: called with the arguments of the view, which gets the result as
    #: ``preparation`` and has to check that it is still valid
    prepare: Callable[..., object] | None = None
    #: whether it calls an executor, which may not answer
    calls_executors: bool = False
    #: locks the object of a conditional change: called with the session and the arguments of the path
    lock: Callable[..., object] | None = None
    #: content type, of an answer that is not JSON
    content_type: str = "application/json"
    #: further types of the answer, as a stream
    streams: tuple[str, ...] = ()
    #: whether the answer has a secret, so that it cannot be kept for an ``Idempotency-Key``
    has_secret: bool = False

    @property
    def name(self) -> str:
        """Name that is unique in the application: ``jobs.get_job``."""
        return f"{self.resource.name}.{self.view.__name__}"

    @property
    def is_safe(self) -> bool:
        """Whether the operation changes nothing."""
        return self.method in SAFE_METHODS


@dataclass(eq=False, slots=True)
class Resource:
    """Group of operations."""

    name: str
    description: str = ""
    #: names of fields in the errors of services -> members of the schemas
    member_names: Mapping[str, str] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def get(self, path: str, **options: Any) -> Callable[[View], View]:
        """Declare a view that reads."""
        return self._declare("GET", path, options)

    def post(self, path: str, **options: Any) -> Callable[[View], View]:
        """Declare a view that adds or acts."""
        return self._declare("POST", path, options)

    def put(self, path: str, **options: Any) -> Callable[[View], View]:
        """Declare a view that replaces."""
        return self._declare("PUT", path, options)

    def patch(self, path: str, **options: Any) -> Callable[[View], View]:
        """Declare a view that changes the given members."""
        return self._declare("PATCH", path, options)

    def delete(self, path: str, **options: Any) -> Callable[[View], View]:
        """Declare a view that deletes."""
        return self._declare("DELETE", path, {"status": 204, **options})

    def _declare(self, method: str, path: str, options: dict[str, Any]) -> Callable[[View], View]:
        def add(view: View) -> View:
            self.operations.append(Operation(method=method, path=path, view=view, resource=self, **options))
            return view

        return add


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Call of an operation, after all checks."""

    caller: ApiCaller
    now_ms: Millis
    config: Config
    #: client that calls executors
    executors: Caller
    #: the parameters, an instance of the operation's ``query``
    query: Any = None
    #: changes are rolled back; a view without a transaction has to do that itself
    dry_run: bool = False
    open_session: Session | None = None

    @property
    def session(self) -> Session:
        """The transaction of this call."""
        assert self.open_session is not None, "declared with transaction=False, or in preparation"
        return self.open_session

    def reread(self) -> None:
        """Write what was changed and read it anew: columns may keep less, such as whole seconds."""
        self.session.flush()
        self.session.expire_all()

    @property
    def actor(self) -> Actor:
        """Actor whose rights the services check."""
        return self.caller.actor


@dataclass(frozen=True, slots=True)
class Made:
    """Answer about an object that was made or queued, and its path: ``/jobs/7``."""

    answer: BaseModel
    path: str
