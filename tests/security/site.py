"""A running installation to attack: console, workers and an executor, with the objects of two groups."""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import requests
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, Millis, now_ms
from app.console.web.current import COOKIE
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import Right as PermissionRight
from app.domain.access.permissions import system_actor
from app.domain.enums import Role
from app.models.base import Base, use_zone
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.right import Right
from app.models.session import LoginSession
from app.models.throttle import Throttle
from app.models.user import User
from app.services.accounts.api_tokens import TokenDraft, create_token
from app.services.accounts.login_throttle import LONGEST_WAIT_MS
from app.settings.sealing import use_key
from app.store.runs import reporting
from tests.acceptance.cluster import SECRET_KEY, Cluster
from tests.support.console import ADMIN_PASSWORD, PASSWORD, hash_of
from tests.support.eventually import eventually
from tests.support.fake_executor import FakeExecutor

TIMEOUT_S = 60
HOUR_MS = 3_600_000
#: token of the group ``bound-app``, which is made at the start: the console reads new ones after some seconds
BOUND_TOKEN = "token-of-bound-app-0123"
_CSRF = re.compile(r'name="csrf_token"\s+value="([0-9a-f]+)"')
#: user -> rights on group one; None: no group at all
USERS = {
    "outsider": None,
    "viewer": "view",
    "operator": "view,operate",
    "editor": "view,edit",
    "glue": "view,operate,edit,glue",
}


@dataclass
class Browser:
    """HTTP client of the console with the login of a user; empty cookie: without a login."""

    base: str
    cookie: str = ""
    http: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.http.trust_env = False
        if self.cookie:
            self.http.cookies.set(COOKIE, self.cookie)

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        return self.http.request(
            method, self.base + path, timeout=TIMEOUT_S, allow_redirects=False, **options
        )

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, /, **form: Any) -> requests.Response:
        return self.send("POST", path, data=form)

    def call(self, path: str, /, **form: Any) -> dict[str, Any]:
        """Post to a JSON endpoint; return its answer."""
        response = self.post(path, **form)
        assert response.status_code == 200, response.text
        return dict(response.json())

    def refused(self, path: str, /, **form: Any) -> str:
        """Post to a JSON endpoint that must refuse; return its reason."""
        answer = self.call(path, **form)
        assert answer["code"] == 500, answer
        return str(answer["msg"])

    @cached_property
    def csrf_token(self) -> str:
        found = _CSRF.search(self.get("/help").text)
        assert found is not None
        return found.group(1)

    def submit(self, path: str, /, **form: Any) -> requests.Response:
        """Send the form of a page."""
        return self.post(path, csrf_token=self.csrf_token, **form)


@dataclass(frozen=True)
class Place:
    """Ids of the objects of a group."""

    app_name: str
    group: int
    job: int
    #: a job with a script
    code: int
    #: a run that its executor has accepted and not yet ended
    run: int


@dataclass
class Site:
    """Console, workers and our executor client as processes, and executors of the test itself."""

    cluster: Cluster
    #: stands for the executors of both groups
    executor: FakeExecutor
    browsers: dict[str, Browser] = field(default_factory=dict)
    #: base URL of our executor client
    own_executor: str = ""

    def __post_init__(self) -> None:
        with self._session() as session, session.begin():
            self.one = self._place(session, "group-one", "One")
            self.two = self._place(session, "group-two", "Two")
            self.admin = self._user(session, "admin", Role.ADMIN, None)
            for name, rights in USERS.items():
                self.browsers[name] = self._user(session, name, Role.NORMAL, rights)

    def __getitem__(self, user: str) -> Browser:
        return self.admin if user == "admin" else self.browsers[user]

    @property
    def url(self) -> str:
        return self.cluster.console.address

    @property
    def port(self) -> int:
        return self.cluster.port

    @cached_property
    def token(self) -> str:
        """The access token that the console generated at its first start."""
        return (self.cluster.folder / "home" / "access_token").read_text().strip()

    def executor_answers(self) -> bool:
        """Whether our executor client answers."""
        try:
            return self.to_executor("beat", {})["code"] == 200
        except requests.RequestException:
            return False

    def add_bound_group(self) -> None:
        """Add the group with a token of its own, by the form, so that it is stored as the product does."""
        form = {"app_name": "bound-app", "title": "Bound", "address_type": "0", "access_token": BOUND_TOKEN}
        assert self.admin.submit("/jobgroup/new", **form).status_code == 303

    def _session(self) -> Session:
        """Return a session with the application key and the time zone of the program."""
        use_key(lambda: SECRET_KEY)
        use_zone("UTC")
        return Session(self.cluster.engine(), expire_on_commit=False)

    def anonymous(self) -> Browser:
        return Browser(self.url)

    def machine(self, action: str, body: Any, token: str | None = None) -> dict[str, Any]:
        """Call ``/api/<action>`` as an executor; without ``token`` with the console's."""
        return self.call_with_token(f"{self.url}/api/{action}", body, token)

    def to_executor(self, action: str, body: Any, token: str | None = None) -> dict[str, Any]:
        """Call our executor client as a console does."""
        return self.call_with_token(f"{self.own_executor}/{action}", body, token)

    def call_with_token(self, url: str, body: Any, token: str | None) -> dict[str, Any]:
        headers = {"XXL-JOB-ACCESS-TOKEN": self.token if token is None else token}
        with requests.Session() as http:
            http.trust_env = False
            response = http.post(url, json=body, headers=headers, timeout=TIMEOUT_S)
        assert response.status_code == 200, response.text
        return dict(response.json())

    def row(self, model: type[Base], key: int) -> Any:
        """Return a committed row, detached."""
        with self._session() as session:
            return session.get(model, key)

    def rows(self, model: type[Base]) -> list[Any]:
        with self._session() as session:
            return list(session.scalars(select(model)))

    def count(self, table: str) -> int:
        return int(self.cluster.select(f"SELECT count(*) AS n FROM {table}")[0]["n"])

    def store(self, row: Base) -> int:
        """Commit a row and return its id."""
        with self._session() as session, session.begin():
            return self._add(session, row)

    def remove(self, table: str, key: int) -> None:
        with self.cluster.engine().begin() as connection:
            connection.execute(text(f"DELETE FROM {table} WHERE id = :key"), {"key": key})

    def change_login(self, name: str, **changes: int) -> None:
        """Change the rows of a user's logins."""
        with self._session() as session, session.begin():
            user = session.scalars(select(User).filter_by(username=name)).one()
            for login in session.scalars(select(LoginSession).filter_by(user_id=user.id)):
                for column, value in changes.items():
                    setattr(login, column, value)

    def prolong_throttle(self, name: str) -> None:
        """Let an account wait as long as it can after failed logins."""
        with Session(self.cluster.engine()) as session, session.begin():
            counter = session.get(Throttle, f"account:{name}")
            assert counter is not None
            counter.blocked_until_ms = now_ms() + LONGEST_WAIT_MS

    def new_run(self, place: Place, **changes: Any) -> int:
        """Store a run of a group's job."""
        with self._session() as session, session.begin():
            return self._run(session, place.group, place.job, **changes)

    def count_runs(self, day_ms: Millis) -> None:
        """Count all runs as those of a day, which the monitor does for the last days every minute."""
        with self._session() as session, session.begin():
            counts = reporting.count_runs(session, from_ms=0, until_ms=LATEST_MS)
            reporting.save_report(session, day_ms, counts, now_ms=now_ms())

    def new_job(self, place: Place, **changes: Any) -> int:
        """Store a job of a group."""
        with self._session() as session, session.begin():
            return self._job(session, place.group, **changes)

    def log_in(self, name: str, password: str = PASSWORD) -> Browser:
        """Log in by HTTP."""
        browser = self.anonymous()
        assert browser.call("/login", userName=name, password=password)["code"] == 200
        return browser

    def new_user(self, name: str, rights: str | None = None) -> Browser:
        """Store a user, with rights on group one, and return a browser logged in as it."""
        with self._session() as session, session.begin():
            return self._user(session, name, Role.NORMAL, rights)

    def new_api_token(self, *rights: PermissionRight, admin: bool = False) -> tuple[int, str]:
        """Store a service token of API v1; return its id and the token."""
        draft = TokenDraft(secrets.token_hex(4), Grant(frozenset(rights), admin=admin), service=True)
        with self._session() as session, session.begin():
            made = create_token(session, draft, actor=system_actor("test"), now_ms=now_ms())
        return made.id, made.token

    def _place(self, session: Session, app_name: str, title: str) -> Place:
        group = self._add(
            session,
            Group(
                app_name=app_name,
                title=title,
                address_type=1,
                address_list=self.executor.address,
                update_time=now_ms(),
            ),
        )
        job = self._job(session, group, executor_param=f"secret of {app_name}")
        code = self._job(session, group, glue_type="GLUE_SHELL", glue_source=f"echo {app_name}")
        return Place(app_name, group, job, code, self._run(session, group, job))

    def _job(self, session: Session, group: int, **changes: Any) -> int:
        at_ms = now_ms()
        values = {
            "job_group": group,
            "job_desc": "target",
            "author": "ann",
            "add_time": at_ms,
            "update_time": at_ms,
            "schedule_type": "NONE",
            "schedule_conf": "",
            "executor_route_strategy": "FIRST",
            "executor_handler": "ok",
            "executor_param": "",
            "executor_block_strategy": "SERIAL_EXECUTION",
            "glue_type": "BEAN",
            "glue_source": "",
            "glue_updatetime": at_ms,
            "child_jobid": "",
        }
        return self._add(session, Job(**{**values, **changes}))

    def _run(self, session: Session, group: int, job: int, **changes: Any) -> int:
        values = {
            "job_group": group,
            "job_id": job,
            "executor_address": self.executor.address,
            "executor_handler": "ok",
            "trigger_time": now_ms(),
            "trigger_code": 200,
            "trigger_msg": "sent",
            "trigger_type": "MANUAL",
        }
        return self._add(session, JobLog(**{**values, **changes}))

    def _user(self, session: Session, name: str, role: Role, rights: str | None) -> Browser:
        password = ADMIN_PASSWORD if role == Role.ADMIN else PASSWORD
        permission = str(self.one.group) if rights else ""
        row = User(username=name, password=hash_of(password), role=int(role), permission=permission)
        user_id = self._add(session, row)
        if rights:
            session.add(Right(user_id=user_id, group_id=self.one.group, rights=rights))
        token, at_ms = secrets.token_hex(32), now_ms()
        session.add(
            LoginSession(
                token_hash=sha256(token.encode()).hexdigest(),
                user_id=user_id,
                created_ms=at_ms,
                last_seen_ms=at_ms,
                expires_ms=at_ms + HOUR_MS,
                address="127.0.0.1",
            )
        )
        return Browser(self.url, token)

    def _add(self, session: Session, row: Any) -> int:
        session.add(row)
        session.flush()
        return int(row.id)


def await_true(condition: Callable[[], Any], message: str) -> None:
    """Wait for an effect of the running program."""
    eventually(lambda: bool(condition()), 60, message)
