"""Gateway: blocking calls to executors, for the console and the monitors. Dispatch uses ``dispatch_client``.

The address is checked before each call and the peer again once connected. Redirects and the environment's
proxies are ignored; size and duration of a response are limited; there is one attempt. ``requests`` is loaded
with the first call, because it costs every process 4 MB.
"""

import json
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from app.domain.runs.evidence import refuses_absent
from app.domain.runs.trace_templates import NO_ANSWER, NO_CONNECTION
from app.errors import ExecutorRefused, ExecutorUnreachable, InvalidInput
from app.executors.calls import LOG_REPLY_MAX, REPLY_MAX, Peer, is_to_repeat, prepare, reason_of, refusal_of
from app.settings.config import Network
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import SUCCESS, JobRequest, LogRequest, LogResult, Reply
from executor_client.wire.run_reports import Progress

if TYPE_CHECKING:
    from app.executors.guarded_http import TooLong

#: seconds for a whole call, and for /log
CALL_TIMEOUT_S = 5.0
LOG_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 3.0

_CONTENT = re.compile(r'"logContent"\s*:\s*"')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class ReadLog(NamedTuple):
    """Piece of a run's log, and what an executor of ours says of the run."""

    piece: LogResult
    #: None: the executor has not reported any
    progress: Progress | None
    #: whether its handler has not ended, though it may have been killed
    is_running: bool


class Gateway:
    """Blocking client of executors; one instance per process, thread-safe."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks

    def beat(self, peer: Peer, *, timeout_s: float = CALL_TIMEOUT_S) -> Reply:
        """Probe whether the executor is alive. Raises ExecutorUnreachable."""
        return self._call(peer, "beat", {}, timeout_s=timeout_s)

    def accepts_any_token(self, peer: Peer, *, timeout_s: float) -> bool:
        """Probe with a wrong token whether anyone who reaches the executor can run code there."""
        wrong = Peer(peer.address, peer.app_name, f"wrong-{secrets.token_hex(16)}")
        try:
            return not refusal_of(self.beat(wrong, timeout_s=timeout_s))
        except ExecutorUnreachable:
            return False

    def idle_beat(self, peer: Peer, job_id: int, *, timeout_s: float = CALL_TIMEOUT_S) -> Reply:
        """Probe whether a job is idle there. Raises ExecutorUnreachable."""
        return self._call(peer, "idleBeat", JobRequest(job_id).to_wire(), timeout_s=timeout_s)

    def kill(self, peer: Peer, job_id: int) -> Reply:
        """Request the end of a job's run and queued runs. Raises ExecutorUnreachable."""
        return self._call(peer, "kill", JobRequest(job_id).to_wire(), timeout_s=CALL_TIMEOUT_S)

    def read_log(self, peer: Peer, request: LogRequest, *, timeout_s: float = LOG_TIMEOUT_S) -> LogResult:
        """Read a piece of a run's log, of a very long one the first whole lines.

        Raises ExecutorUnreachable, also if the executor refuses.
        """
        return self.read_run(peer, request, timeout_s=timeout_s, progress=False).piece

    def read_run(
        self, peer: Peer, request: LogRequest, *, timeout_s: float, progress: bool, last_lines: int = 0
    ) -> ReadLog:
        """Read a piece of a run's log; executors of ours add the ``progress`` of a run that has not ended.

        Those that announce LAST_LINES return the ``last_lines`` instead, unless that is 0.
        """
        body = request.to_wire() | ({"progress": True} if progress else {})
        body |= {"lastLines": last_lines} if last_lines else {}
        reply = self._call(peer, "log", body, timeout_s=timeout_s)
        if refusal := refusal_of(reply):
            raise _refusal_error(peer, reply, refusal)
        piece = LogResult.from_wire(reply.content, from_line_num=request.from_line_num)
        fields = reply.content if progress and isinstance(reply.content, dict) else {}
        return ReadLog(piece, Progress.parse(fields.get("progress")), fields.get("running") is True)

    def _call(self, peer: Peer, action: str, body: dict[str, Any], *, timeout_s: float) -> Reply:
        """Call; repeat a call refused for its token with the token before, within the same timeout."""
        until = time.monotonic() + timeout_s
        reply = self._call_once(peer, action, body, timeout_s)
        left_s = until - time.monotonic()
        if not is_to_repeat(peer, reply) or left_s <= 0:
            return reply
        return self._call_once(peer.with_former_token(), action, body, left_s)

    def _call_once(self, peer: Peer, action: str, body: dict[str, Any], timeout_s: float) -> Reply:
        import requests

        from app.executors.guarded_http import (
            ConnectionGuard,
            DirectSession,
            TooLong,
            guard_session,
            read_bounded,
        )

        until = time.monotonic() + timeout_s
        guard = ConnectionGuard(self._networks)
        try:
            url, headers = prepare(peer, action, self._networks)
            with guard.cut_after(timeout_s), guard_session(DirectSession(), guard) as http:
                answer = http.post(
                    url.geturl(),
                    data=dump_json(body),
                    headers=headers,
                    timeout=(min(CONNECT_TIMEOUT_S, timeout_s), timeout_s),
                    allow_redirects=False,
                    stream=True,
                )
                limit = LOG_REPLY_MAX if action == "log" else REPLY_MAX
                with answer as response:  # closes the connection, whatever was read of it
                    try:
                        return Reply.parse(response.status_code, read_bounded(response, limit, until))
                    except TooLong as exc:
                        return _first_lines(exc, action, response.status_code)
        except InvalidInput as exc:
            raise ExecutorUnreachable(peer.address, exc.message) from exc
        except (OSError, ValueError, RuntimeError) as exc:  # also of a malformed answer
            late = time.monotonic() >= until and not isinstance(exc, requests.ConnectTimeout)
            raise ExecutorUnreachable(peer.address, NO_ANSWER if late else _reason(exc, peer)) from exc


def _first_lines(error: "TooLong", action: str, status: int) -> Reply:
    """Return the first lines of a log that is too long; raise the error again for any other answer."""
    lines = first_lines(error.start) if action == "log" and status == SUCCESS else None
    if lines is None:
        raise error
    return lines


def _refusal_error(peer: Peer, reply: Reply, refusal: str) -> ExecutorUnreachable:
    """Return the error of a refusal, which may also be that of a gateway before the executor."""
    is_own = reply.well_formed or refuses_absent(refusal)
    return (ExecutorRefused if is_own else ExecutorUnreachable)(peer.address, refusal)


def _reason(error: Exception, peer: Peer) -> str:
    import requests

    if isinstance(error, requests.ConnectTimeout):
        return NO_CONNECTION
    if isinstance(error, requests.Timeout):
        return NO_ANSWER
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return reason_of(cause, urlsplit(peer.address).hostname)


def first_lines(answer: bytes) -> Reply | None:
    """Return the whole lines at the start of a truncated answer to ``/log``; None if there is none.

    The reply has no line numbers, because the caller knows them and reads on behind these lines.
    """
    text = answer.decode("utf-8", "replace")
    content = _CONTENT.search(text)
    if content is None:
        return None
    ends = [escape.end() for escape in _ESCAPE.finditer(text, content.end()) if escape[1] == "n"]
    try:
        lines = json.loads(f'"{text[content.end() : ends[-1]]}"', strict=False) if ends else ""
    except ValueError:  # the cut is in another member
        return None
    return Reply(SUCCESS, None, {"logContent": lines}) if lines else None
