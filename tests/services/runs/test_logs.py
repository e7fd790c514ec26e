"""Reading logs and killing runs, against a small HTTP server as the executor."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from app.clock import DAY_MS, Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.enums import AddressType
from app.errors import Conflict, ExecutorUnreachable
from app.executors.gateway import Gateway
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.variable import Variable
from app.services.executors.callers import Caller
from app.services.runs import logs
from app.services.runs.logs import months_before
from app.settings.config import Config
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

NOW: Millis = 1_714_530_000_000
ADMIN = system_actor("test")
SECRET = 'say "täglich" often'


class StubExecutor:
    """A stub executor: answers each action as set by the test and records the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.received: list[tuple[str, str, dict[str, Any]]] = []
        executor = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                executor.received.append((self.path, self.headers["XXL-JOB-ACCESS-TOKEN"], body))
                answer = json.dumps(executor.answers.get(self.path, {"code": 500, "msg": "no"})).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def executor() -> Iterator[StubExecutor]:
    made = StubExecutor()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def caller() -> Caller:
    return Caller(Gateway(Config.from_env({}, dotenv=None).executor_networks), ("the-global-token-1",))


def add_run(
    address: str, *, token: str | None = None, handle_code: int = 0, trigger_code: int = 200
) -> JobLog:
    with session_scope() as session:
        group = Group(app_name="some-app", title="Some", address_list=address, access_token=token)
        session.add(group)
        session.flush()
        job = Job(job_group=group.id, job_desc="x", glue_type="BEAN", schedule_type="NONE")
        session.add(job)
        session.flush()
        log = JobLog(
            job_group=group.id,
            job_id=job.id,
            executor_address=address,
            trigger_time=NOW,
            trigger_code=trigger_code,
            handle_code=handle_code,
        )
        session.add(log)
        session.flush()
        return log


@pytest.mark.parametrize(
    ("token", "sent"), [(None, "the-global-token-1"), ("the-groups-token-1", "the-groups-token-1")]
)
def test_a_log_is_read_with_the_token_of_its_group(
    executor: StubExecutor, caller: Caller, token: str | None, sent: str
) -> None:
    log = add_run(executor.address, token=token)
    executor.answers["/log"] = {
        "code": 200,
        "content": {"fromLineNum": 3, "toLineNum": 4, "logContent": "a\n<b>\n", "isEnd": False},
    }
    piece = logs.read_log(log.id, 3, actor=ADMIN, caller=caller)
    assert (piece.from_line_num, piece.to_line_num, piece.log_content, piece.is_end) == (
        3,
        4,
        "a\n<b>\n",
        False,
    )
    ((path, token_header, body),) = executor.received
    assert (path, token_header, body["logDateTim"], body["logId"], body["fromLineNum"]) == (
        "/log",
        sent,
        NOW,
        log.id,
        3,
    )


def leave_group(group_id: int, kind: AddressType) -> None:
    """Replace the addresses of a group by another one."""
    with session_scope() as session:
        group = session.get_one(Group, group_id)
        group.address_type, group.address_list = kind, "http://127.0.0.1:1111/"


@pytest.mark.parametrize("token", ["the-groups-token-1", None])
def test_the_token_of_a_group_is_not_sent_to_an_address_that_has_left_it(
    executor: StubExecutor, caller: Caller, token: str | None
) -> None:
    log = add_run(executor.address, token=token)
    leave_group(log.job_group, AddressType.MANUAL)
    calls: list[Callable[[], object]] = [
        lambda: logs.read_log(log.id, 1, actor=ADMIN, caller=caller),
        lambda: logs.kill_log(log.id, actor=ADMIN, caller=caller, now_ms=NOW),
    ]
    for call in calls:
        with pytest.raises(ExecutorUnreachable, match="no longer an address of" if token else "no"):
            call()
    assert [path for path, _, _ in executor.received] == ([] if token else ["/log", "/kill"])


@pytest.mark.parametrize("token", ["the-groups-token-1", None])
def test_no_token_is_sent_to_an_address_of_a_deleted_group(
    executor: StubExecutor, caller: Caller, token: str | None
) -> None:
    """Whether the group had its own is no longer known."""
    log = add_run(executor.address, token=token)
    with session_scope() as session:
        session.delete(session.get_one(Group, log.job_group))
    with pytest.raises(ExecutorUnreachable, match="the executor group of this run no longer exists"):
        logs.read_log(log.id, 1, actor=ADMIN, caller=caller)
    with pytest.raises(ExecutorUnreachable, match="the executor group of this run no longer exists"):
        logs.kill_log(log.id, actor=ADMIN, caller=caller, now_ms=NOW)
    assert executor.received == []


@pytest.mark.parametrize("trigger_code", [500, 504])
def test_an_address_that_left_gets_no_token_for_a_run_that_is_not_open(
    executor: StubExecutor, caller: Caller, trigger_code: int
) -> None:
    """A failed sending and an unresolved run have no result either."""
    log = add_run(executor.address, token="the-groups-token-1", trigger_code=trigger_code)
    leave_group(log.job_group, AddressType.AUTOMATIC)
    with pytest.raises(ExecutorUnreachable, match="no longer an address of"):
        logs.read_log(log.id, 1, actor=ADMIN, caller=caller)


@pytest.mark.parametrize("handle_code", [0, 200])
def test_an_executor_that_has_deregistered_is_called_while_its_run_is_open(
    executor: StubExecutor, caller: Caller, handle_code: int
) -> None:
    """It may be finishing its runs before it ends."""
    log = add_run(executor.address, token="the-groups-token-1", handle_code=handle_code)
    leave_group(log.job_group, AddressType.AUTOMATIC)
    with pytest.raises(ExecutorUnreachable, match="no longer an address of" if handle_code else "no"):
        logs.read_log(log.id, 1, actor=ADMIN, caller=caller)
    assert [path for path, _, _ in executor.received] == ([] if handle_code else ["/log"])


@pytest.mark.parametrize("last", [0, 4, 5, 6])
@pytest.mark.parametrize(("handle_code", "is_end"), [(0, False), (200, True)])
def test_a_log_ends_if_nothing_new_comes_and_the_run_has_ended(
    executor: StubExecutor, caller: Caller, handle_code: int, is_end: bool, last: int
) -> None:
    """Whatever line is named as the last: pyxxl and two Go clients name one that does not exist."""
    log = add_run(executor.address, handle_code=handle_code)
    executor.answers["/log"] = {
        "code": 200,
        "content": {"fromLineNum": 5, "toLineNum": last, "logContent": "", "isEnd": False},
    }
    piece = logs.read_log(log.id, 5, actor=ADMIN, caller=caller)
    assert piece.is_end is is_end
    assert piece.to_line_num == min(last, 4)


@pytest.mark.parametrize(
    ("content", "last"),
    [
        ({"toLineNum": 7, "logContent": "five\nsix\n"}, 6),  # npm xxl-job: 7 would skip the next line
        ({"toLineNum": 6, "logContent": "five\nsix\n"}, 6),
        ({"toLineNum": 6, "logContent": "five\nsix"}, 6),
        ({"toLineNum": 5, "logContent": "No such logid logs."}, 4),  # pyxxl, whatever line is read
        ({"toLineNum": 0, "logContent": "readLog fail, logFile not exists"}, 0),
    ],
)
def test_the_last_line_is_one_that_was_read(
    executor: StubExecutor, caller: Caller, content: dict[str, Any], last: int
) -> None:
    log = add_run(executor.address)
    executor.answers["/log"] = {"code": 200, "content": {"fromLineNum": 5, "isEnd": False, **content}}
    piece = logs.read_log(log.id, 5, actor=ADMIN, caller=caller)
    assert (piece.to_line_num, piece.log_content) == (last, content["logContent"])


def test_a_kill_ends_the_run_once(executor: StubExecutor, caller: Caller) -> None:
    log = add_run(executor.address)
    with pytest.raises(ExecutorUnreachable, match="no"):
        logs.kill_log(log.id, actor=ADMIN, caller=caller, now_ms=NOW)
    executor.answers["/kill"] = {"code": 200, "msg": "ended"}
    assert logs.kill_log(log.id, actor=ADMIN, caller=caller, now_ms=NOW) == "ended"
    with pytest.raises(Conflict, match="ended already"):
        logs.kill_log(log.id, actor=ADMIN, caller=caller, now_ms=NOW)
    with read_scope() as session:
        stored = session.get(JobLog, log.id)
        assert stored is not None
        assert (stored.handle_code, stored.handle_msg) == (500, "killed by test: ended")
    assert [path for path, _, _ in executor.received] == ["/kill", "/kill"]


@pytest.mark.parametrize(("months", "days"), [(1, 30), (3, 90), (12, 366)])
def test_some_months_ago_is_the_same_local_time(months: int, days: int) -> None:
    assert months_before(NOW, months) == NOW - days * DAY_MS


def test_a_shorter_month_gives_its_last_day() -> None:
    assert (
        months_before(1_711_857_600_000, 1) == 1_711_857_600_000 - 31 * DAY_MS
    )  # 31 March 2024, noon in Shanghai: 29 February


def secret_run(address: str, *, handle_code: int = 0, secret: str = SECRET) -> JobLog:
    """Return a run that was sent a secret."""
    log = add_run(address, handle_code=handle_code)
    with session_scope() as session:
        stored = session.get_one(JobLog, log.id)
        stored.param_form, stored.executor_param = 1, "${secret.TOKEN}"
        stored.filled_param = "${secret.TOKEN}"
        session.add(Variable(name="TOKEN", group_id=log.job_group, secret=secret))
    return log


def answer_log(executor: StubExecutor, text: str, **more: object) -> None:
    content = {"fromLineNum": 1, "toLineNum": text.count("\n"), "logContent": text, "isEnd": False, **more}
    executor.answers["/log"] = {"code": 200, "content": content}


def test_secrets_are_masked_in_logs(executor: StubExecutor, caller: Caller) -> None:
    log = secret_run(executor.address)
    answer_log(executor, f"a {SECRET}\n{json.dumps(SECRET)}\n")
    piece = logs.read_log(log.id, 1, actor=ADMIN, caller=caller)
    assert (piece.to_line_num, piece.log_content) == (2, 'a ‹secret TOKEN›\n"‹secret TOKEN›"\n')
    executor.answers["/log"] = {"code": 500, "msg": f"no {SECRET}"}
    with pytest.raises(ExecutorUnreachable) as error:
        logs.read_log(log.id, 1, actor=ADMIN, caller=caller)
    assert (error.value.reason, error.value.__suppress_context__) == ("no ‹secret TOKEN›", True)


@pytest.mark.parametrize(("handle_code", "shown"), [(0, "a\n"), (200, "a\n‹secret TOKEN›\n")])
def test_a_value_of_several_lines_is_masked_when_it_is_complete(
    executor: StubExecutor, caller: Caller, handle_code: int, shown: str
) -> None:
    """What may begin one waits while the run goes on; nothing of a log stays back in the end."""
    log = secret_run(executor.address, handle_code=handle_code, secret="long first line\nx\ny")
    answer_log(executor, "a\nlong first line\n")
    piece = logs.read_log(log.id, 1, actor=ADMIN, caller=caller)
    assert (piece.to_line_num, piece.log_content) == (shown.count("\n"), shown)


def test_secrets_are_masked_in_answers_to_kills(executor: StubExecutor, caller: Caller) -> None:
    log = secret_run(executor.address)
    for code in (500, 200):
        executor.answers["/kill"] = {"code": code, "msg": f"said {SECRET}"}
        try:
            said = logs.kill_log(log.id, actor=ADMIN, caller=caller, now_ms=NOW)
        except ExecutorUnreachable as exc:
            said = exc.reason
        assert said == "said ‹secret TOKEN›"
    with read_scope() as session:
        assert session.get_one(JobLog, log.id).handle_msg == "killed by test: said ‹secret TOKEN›"


def test_a_log_without_secrets_costs_no_statement(executor: StubExecutor, caller: Caller) -> None:
    answer_log(executor, "a\n")
    counts = []
    for log in (add_run(executor.address), secret_run(executor.address)):
        with statements() as executed:
            logs.read_log(log.id, 1, actor=ADMIN, caller=caller)
        counts.append(len(executed))
    assert counts[1] == counts[0] + 2
