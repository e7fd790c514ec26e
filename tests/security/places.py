"""Objects and callers of the endpoint matrix, and what an answer means."""

import itertools
import re
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import select
from werkzeug.test import TestResponse

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope, session_scope
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.calendars.drafts import CalendarDraft
from app.domain.limits.waits import Wait, WaitReason
from app.models.api_token import ApiToken
from app.models.backfill import Backfill, BackfillInstant
from app.models.base import Base
from app.models.calendar import JobBlackout
from app.models.channel import AlarmChannel, ChannelScope
from app.models.drain import Drain
from app.models.favourite import Favourite
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.job import Job
from app.models.limit import Limit
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.promise import Incident
from app.models.right import Right as RightRow
from app.models.round import Arrival, Round
from app.models.saved_view import SavedView
from app.models.session import LoginSession
from app.models.tag import JobTag
from app.models.task import Task
from app.models.user import User
from app.models.variable import Variable, VariableVersion
from app.services.alarms import channel_setup
from app.services.alarms.channel_setup import ChannelDraft
from app.services.calendars import calendars
from app.services.jobs import glue
from app.services.variables import variables
from app.services.variables.variables import VariableDraft
from app.store.accounts import users
from app.store.limits.slots import NO_END
from tests.console.pages import token_of
from tests.security.endpoints import INSTANCE, Call
from tests.support.console import ACTOR, CONTEXT, Console, add_group, add_job, add_user
from tests.support.console_scripting import add_log
from tests.support.factories import only_row, save
from tests.support.promises import make_incident

#: an unused id
MISSING = 987_654
TABLES: tuple[type[Base], ...] = (
    Backfill,
    BackfillInstant,
    Fire,
    GlueVersion,
    Group,
    Job,
    JobLog,
    JobTag,
    Favourite,
    Drain,
    Mute,
    User,
    RightRow,
    SavedView,
    Task,
    AlarmChannel,
    ChannelScope,
    ApiToken,
    Variable,
    VariableVersion,
    Incident,
    Limit,
    Round,
)
_numbers = itertools.count(1)


class Place(NamedTuple):
    """Objects of a group: a job of each kind, a run, a version; and those of users."""

    group: int
    app_name: str
    job: int
    code: int
    log: int
    version: int
    #: login, view and task of the caller, or of a stranger
    login: int
    view: int
    task: int
    #: a user and a login of theirs
    user: int
    their_login: int
    #: an alarm channel for the group
    channel: int
    #: API token of the caller, or of a stranger; and one of the user above
    token: int = 0
    their_token: int = 0
    #: a variable and a secret of the group
    variable: int = 0
    secret: int = 0
    #: an open incident of the job
    incident: int = 0
    #: fire of a run that waits for a limit of the group, and the limit's name
    waiting: int = 0
    limit: str = ""
    #: its id; an unresolved run that holds a slot
    limit_id: int = 0
    held: int = 0
    #: round of a chain that the job has, and the chain
    round: int = 0
    chain: str = ""
    #: a calendar, which all may read; a blackout of the group that is to come
    calendar: int = 0
    blackout: int = 0
    #: a backfill of the job that is paused
    backfill: int = 0


NOWHERE = Place(
    MISSING,
    "no-such-app",
    *[MISSING] * 16,
    "no such limit",
    MISSING,
    MISSING,
    MISSING,
    "f" * 15,
    MISSING,
    MISSING,
    MISSING,
)


class Meaning(StrEnum):
    """What an answer says about the caller's access."""

    LOG_IN = "log in first"
    DENIED = "permission denied"
    MISSING = "no such object"
    REFUSED = "the request is invalid"
    DONE = "done"
    ERROR = "error"


def make_place(title: str) -> Place:
    """Store a group with its objects, and objects of a new user without groups."""
    number = next(_numbers)
    app_name = f"{title}-app-{number}"
    group = add_group(app_name, title, addresses=INSTANCE)
    job = add_job(
        group, job_desc=f"{title} job", executor_param=f"{title} parameter", author=f"{title} owner"
    )
    code = add_job(
        group,
        job_desc=f"{title} script",
        glue_type="GLUE_SHELL",
        glue_source=f"echo {title}",
        executor_handler="",
    )
    with session_scope() as session:
        version = glue.save_source(
            session, code, f"echo {title} 2", f"{title} remark", actor=ACTOR, now_ms=now_ms()
        )
        found = session.get_one(Group, group)
        found.access_token, found.former_token = f"own-token-of-{app_name}", f"former-token-of-{app_name}"
    log = add_log(job, group, address=INSTANCE, result='{"rows": 1}')
    other = f"other{number}"
    user, login = add_user(other), _login_of(other)
    place = Place(
        group, app_name, job, code, log, version, login, 0, 0, user, login, _channel_of(group, number)
    )
    variable, secret = (_variable_of(group, title, is_secret=is_secret) for is_secret in (False, True))
    place = place._replace(their_token=_token_of(user, number), variable=variable, secret=secret)
    place = place._replace(incident=make_incident(job, group).id, limit=f"{title} limit {number}")
    place = place._replace(waiting=_waiting_of(group, job, place.limit), held=_held_of(group, job))
    place = place._replace(limit_id=only_row(Limit, name=place.limit).id)
    place = place._replace(calendar=_calendar_of(number), blackout=_blackout_of(group, title))
    place = place._replace(backfill=_backfill_of(group, job, title))
    chain = 0x9F86D081884C700 + number
    return owned_by(other, place._replace(round=_round_of(job, code, log, chain), chain=f"{chain:015x}"))


def _calendar_of(number: int) -> int:
    with session_scope() as session:
        name = f"calendar {number}"
        return calendars.put_calendar(session, name, CalendarDraft(), actor=ACTOR, clock=now_ms).id


def _blackout_of(group: int, title: str) -> int:
    begin_ms = now_ms() + DAY_MS
    columns = {"from_ms": begin_ms, "until_ms": begin_ms + DAY_MS, "created_ms": begin_ms}
    return save(JobBlackout(group_id=group, reason=f"{title} reason", **columns)).id


def _backfill_of(group: int, job: int, title: str) -> int:
    """Store a paused backfill of one instant; return its id."""
    asked = {"which": "all", "run_order": "oldest_first", "children": "none", "on_failure": "stop"}
    names = {"job_name": f"{title} job", "username": f"{title} author", "user_id": 0}
    times = {"from_ms": 0, "to_ms": 1, "created_ms": 0, "updated_ms": 0}
    columns = {**asked, **names, **times, "state": "paused", "total": 1, "summary": '{"instants": 1}'}
    backfill_id = save(Backfill(job_id=job, job_group=group, **columns)).id
    save(BackfillInstant(backfill_id=backfill_id, logical_ms=0, number=0))
    return backfill_id


def _variable_of(group: int, title: str, *, is_secret: bool) -> int:
    name, text = ("KEY", None) if is_secret else ("REGION", f"{title} value")
    sealed = f"{title} sealed value" if is_secret else None
    draft = VariableDraft(name, value=text, secret=sealed, is_confirmed=True)
    with session_scope() as session:
        return variables.add_variable(session, draft, group_id=group, actor=ACTOR, now_ms=now_ms())


def _waiting_of(group: int, job: int, name: str) -> int:
    """Store a limit of the group, and a run of the job that waits for it; return the fire's id."""
    limit = save(Limit(kind="named", name=name, group_id=group, slots=3))
    wait = Wait(limit.id, WaitReason.FULL, 3, 3)
    fire = Fire(
        job_id=job,
        fire_key=f"cron:{job}:{name}",
        due_time=now_ms(),
        trigger_type="CRON",
        state="WAITING",
        waits_for=wait.text,
        lease_until=NO_END,
    )
    return save(fire).id


def _round_of(job: int, predecessor: int, log: int, chain: int) -> int:
    """Store an open round of a chain, in which the predecessor of a job has failed; return its id."""
    columns = {"logical_ms": now_ms(), "opened_ms": now_ms(), "chain": chain}
    row = save(Round(job_id=job, round_key=f"c:{chain}", **columns))
    save(Arrival(round_id=row.id, predecessor_id=predecessor, outcome="failed", log_id=log, at_ms=now_ms()))
    return row.id


def _held_of(group: int, job: int) -> int:
    """Store an unresolved run of the job that holds its slot."""
    log = add_log(job, group, address=INSTANCE)
    fire = Fire(job_id=job, fire_key=f"cron:{job}:{log}", due_time=now_ms(), trigger_type="CRON")
    fire.state, fire.log_id, fire.admitted_ms = "HELD", log, now_ms()
    save(fire)
    return log


def _channel_of(group: int, number: int) -> int:
    settings = {"url": "http://127.0.0.1:9/"}
    draft = ChannelDraft(f"channel {number}", ChannelKind.WEBHOOK, settings, for_all=False, group_ids=[group])
    with session_scope() as session:
        return channel_setup.add_channel(session, draft, actor=ACTOR, now_ms=now_ms())


def _token_of(user_id: int, number: int) -> int:
    row = ApiToken(name=f"token {number}", token_hash=f"{number:064x}", user_id=user_id, rights="view")
    with session_scope() as session:
        session.add(row)
        session.flush()
        return row.id


def owned_by(name: str, place: Place) -> Place:
    """Return the place with a login, view, task and API token of this user."""
    login, number = _login_of(name), next(_numbers)
    with session_scope() as session:
        user = users.find_by_name(session, name)
        assert user is not None
        view = SavedView(
            user_id=user.id,
            list_name="jobs",
            name=f"view {number}",
            name_key=f"view {number}",
            filters="",
        )
        task = Task(
            idempotency_key=f"key {number}",
            kind="bulk",
            action="start",
            state="DONE",
            parameters="{}",
            user_id=user.id,
            username=name,
            created_ms=now_ms(),
        )
        session.add_all([view, task])
        session.flush()
    token = _token_of(user.id, next(_numbers))
    return place._replace(login=login, view=view.id, task=task.id, token=token)


def _login_of(name: str) -> int:
    number, at_ms = next(_numbers), now_ms()
    with session_scope() as session:
        user = users.find_by_name(session, name)
        assert user is not None
        row = LoginSession(
            token_hash=f"{number:064x}",
            user_id=user.id,
            created_ms=at_ms,
            last_seen_ms=at_ms,
            expires_ms=at_ms + 3_600_000,
        )
        session.add(row)
        session.flush()
        return row.id


class Caller:
    """Client of one role; logs in again where a call has ended its login."""

    def __init__(self, console: Console, username: str = "", token: str = "") -> None:
        self._console = console
        self._username = username
        self._headers = {"XXL-JOB-ACCESS-TOKEN": token} if token else {}
        self._csrf_token = ""
        self._log_in()

    def send(self, call: Call, place: Place) -> TestResponse:
        path = filled(call.path, place)
        if call.form is None:
            return self._console.get(path, headers=self._headers, buffered=True)
        form = {name: filled(str(value), place) for name, value in call.form.items()}
        answer = self._console.post(path, form | {"csrf_token": self._csrf_token}, headers=self._headers)
        if "log" in call.path or "out" in call.path:
            self._log_in()
        return answer

    def _log_in(self) -> None:
        if self._username:
            self._console.log_in(self._username)
            self._csrf_token = token_of(self._console)


def filled(text: str, place: Place) -> str:
    """Replace ``{job}``, ``{group}``, … by the ids of a place."""
    for name, value in place._asdict().items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def has_object(call: Call) -> bool:
    """Whether a call names an object."""
    text = call.path + "".join(str(value) for value in (call.form or {}).values())
    return any(f"{{{name}}}" in text for name in Place._fields)


def snapshot(*, without: type[Base] | None = None) -> list[Any]:
    """Return all rows that a refused request must leave as they are, except those of one table."""
    with read_scope() as session:
        return [
            sorted((tuple(row) for row in session.execute(select(model.__table__))), key=repr)
            for model in TABLES
            if model is not without
        ]


def answer_of(response: TestResponse) -> tuple[int, object]:
    """Return status and text of an answer without ids and names."""
    answer = response.get_json(silent=True)
    if not isinstance(answer, dict):
        return response.status_code, ""
    return response.status_code, (answer.get("code"), re.sub(r"[0-9]+", "#", str(answer.get("msg"))))


def meaning_of(response: TestResponse) -> Meaning:
    """Return what an answer, a page or the original's JSON, says about the caller's access."""
    status, answer = response.status_code, response.get_json(silent=True)
    if status == 302 and response.headers["Location"] == f"{CONTEXT}/toLogin":
        return Meaning.LOG_IN
    if isinstance(answer, dict) and answer.get("code") == 500:
        message = str(answer["msg"])
        if message == "permission denied":
            return Meaning.DENIED
        return Meaning.MISSING if message.endswith((" id is invalid", "was not found")) else Meaning.REFUSED
    if status in (403, 404):
        return Meaning.DENIED if status == 403 else Meaning.MISSING
    if status >= 500:  # 502: the executor of the run did not answer
        return Meaning.DONE if status == 502 else Meaning.ERROR
    return Meaning.REFUSED if status >= 400 else Meaning.DONE
