"""Remedy of a run that could not be started: the place where its cause is repaired."""

import re
from enum import StrEnum

from app.domain.runs.reason import NOT_SENT
from app.domain.runs.trace_templates import (
    ADDRESS_OUTSIDE,
    ADDRESS_REFUSED,
    ALL_DRAINED,
    ANSWERED_WITH,
    CLOSED,
    CONNECTION_REFUSED,
    GROUP_GONE,
    NAME_OUTSIDE,
    NAME_UNKNOWN,
    NO_ANSWER,
    NO_CANDIDATE,
    NO_CONNECTION,
    NO_SECRET,
    NO_VARIABLE,
    NONE_ENTERED,
    NONE_REGISTERED,
    NONE_REGISTERED_SINCE,
    ONLY_ONE_DRAINED,
    SECRET_SEALED,
    UNANSWERED_WITH,
    find_template,
)


class Remedy(StrEnum):
    """Where the cause of a run that was not started is repaired."""

    #: no executor is registered, or the one that is does not answer: its page, or connect one
    CONNECT = "connect"
    #: every address is drained: the page of the executor, where new runs are allowed again
    UNDRAIN = "undrain"
    #: the address is outside the networks that the console may call
    NETWORK = "network"
    #: the executor refuses the run mode
    GLUE = "glue"
    #: the executor refuses the access token
    TOKEN = "token"
    #: the executor does not know the handler, or the job has no executor: the form of the job
    JOB = "job"
    #: addresses of the executor
    EXECUTOR = "executor"
    #: the parameter names a variable or secret that is missing or cannot be opened
    VARIABLES = "variables"


#: lines of a trace, and reasons of a request
_BY_TEMPLATE = {
    NONE_REGISTERED.msgid: Remedy.CONNECT,
    NONE_REGISTERED_SINCE.msgid: Remedy.CONNECT,
    NO_CANDIDATE.msgid: Remedy.CONNECT,
    CONNECTION_REFUSED.msgid: Remedy.CONNECT,
    NO_CONNECTION.msgid: Remedy.EXECUTOR,
    NO_ANSWER.msgid: Remedy.EXECUTOR,
    CLOSED.msgid: Remedy.EXECUTOR,
    NAME_UNKNOWN.msgid: Remedy.EXECUTOR,
    NONE_ENTERED.msgid: Remedy.EXECUTOR,
    ONLY_ONE_DRAINED.msgid: Remedy.UNDRAIN,
    ALL_DRAINED.msgid: Remedy.UNDRAIN,
    NAME_OUTSIDE.msgid: Remedy.NETWORK,
    ADDRESS_OUTSIDE.msgid: Remedy.NETWORK,
    GROUP_GONE.msgid: Remedy.JOB,
    NO_VARIABLE.msgid: Remedy.VARIABLES,
    NO_SECRET.msgid: Remedy.VARIABLES,
    SECRET_SEALED.msgid: Remedy.VARIABLES,
}
_TEMPLATES = [
    *(NONE_REGISTERED_SINCE, NONE_REGISTERED, ONLY_ONE_DRAINED, ALL_DRAINED, NONE_ENTERED, NO_CANDIDATE),
    *(GROUP_GONE, CONNECTION_REFUSED, NO_CONNECTION, NO_ANSWER, CLOSED, NAME_OUTSIDE, NAME_UNKNOWN),
    *(ADDRESS_OUTSIDE, NO_VARIABLE, NO_SECRET, SECRET_SEALED),
]
#: how reasons begin that the parameter of the job is the cause of
_UNFILLED = "parameter not filled: "
_NESTED = (ADDRESS_REFUSED, ANSWERED_WITH, UNANSWERED_WITH)
#: texts of executors: of Java, of ours and of clients like them
_BY_TEXT = (
    (re.compile(r"glueType\[.*\] is not valid|glue .*not allowed", re.IGNORECASE), Remedy.GLUE),
    (
        re.compile(r"access ?token .*(wrong|invalid)|accessToken or appname invalid", re.IGNORECASE),
        Remedy.TOKEN,
    ),
    (re.compile(r"job ?handler .*not found", re.IGNORECASE), Remedy.JOB),
)


def find_remedy(reason: str) -> Remedy | None:
    """Return the remedy of a reason as ``find_reason`` returns it; None: none is known."""
    for text in (NOT_SENT + reason, reason):
        match = find_template(text, _TEMPLATES)
        if match is not None:
            return _BY_TEMPLATE[match.msgid]
    if reason.startswith(_UNFILLED):
        return Remedy.JOB
    inner = find_template(reason, _NESTED)
    if inner is not None:
        return find_remedy(inner.values["reason"])
    return next((remedy for pattern, remedy in _BY_TEXT if pattern.search(reason)), None)
