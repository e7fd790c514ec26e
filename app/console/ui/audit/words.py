"""Words of the change history: a sentence for each action, a label for each field, values as words."""

from collections.abc import Mapping
from typing import Any

from app.console.ui import labels, tasks
from app.console.ui.audit.sentences import SENTENCES, WITHOUT_OBJECT
from app.console.ui.backfills import words as backfill_words
from app.console.ui.calendars.words import UNKNOWNS, rule_value, weekend_value
from app.console.ui.filters import comma_list, instant, next_time_label
from app.console.ui.limits.words import limits_value
from app.console.ui.promise_words import escalation_value, promises_value
from app.console.ui.rounds.words import runs_after_value
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.alarms.channel_kinds import KINDS
from app.domain.jobs.fields import FIELD_OF
from app.domain.schedules.schedule import RESTING
from app.domain.tasks import TaskKind
from app.services.auditing.audit import BLANKED
from app.services.runs.logs import ClearType

#: sentences of changes of a job, by the fields that changed and no others
OF_FIELDS = (
    (
        frozenset(
            {"schedule_type", "schedule_conf", "time_zone", "not_before_ms", "not_after_ms", "calendar"}
        ),
        _l("changed the schedule of %(object)s"),
    ),
    (frozenset({"tags"}), _l("changed the tags of %(object)s")),
    (frozenset({"job_group"}), _l("moved %(object)s to another executor")),
    (frozenset({"promises", "escalation"}), _l("changed the promises of %(object)s")),
    (
        frozenset({"max_running", "when_full", "priority", "max_wait_s", "limit_key", "limits"}),
        _l("changed the limits of %(object)s"),
    ),
    (
        frozenset({"log_archive", "log_days", "run_days"}),
        _l("changed how long logs and runs of %(object)s are kept"),
    ),
    (frozenset({"alarm_email"}), _l("changed the alarm mail of %(object)s")),
)
#: kind of object -> its title, for the filter
OBJECTS = {
    "job": _l("Job"),
    "group": _l("Executor"),
    "user": _l("User"),
    "log": _l("Run"),
    "channel": _l("Alarm channel"),
    "variable": _l("Variable"),
    "limit": _l("Limit"),
    "calendar": _l("Calendar"),
    "blackout": _l("Blackout"),
    "task": _l("Task"),
    "token": _l("API token"),
    "node": _l("Node"),
}
#: kind of object -> how it is named; ``%(name)s`` is empty for one that has been deleted
OBJECT_TEXTS = {
    "job": _l("job %(id)s %(name)s"),
    "group": _l("executor %(name)s"),
    "user": _l("user %(name)s"),
    "log": _l("run %(id)s"),
    "channel": _l("alarm channel %(name)s"),
    "variable": _l("variable %(name)s"),
    "limit": _l("limit %(name)s"),
    "calendar": _l("calendar %(name)s"),
    "blackout": _l("blackout %(id)s"),
    "task": _l("task %(id)s"),
    "token": _l("API token %(name)s"),
    "node": _l("node %(name)s"),
}
_FIELDS = {
    "address": _l("Address"),
    "adopt": _l("Adopted objects"),
    "apply": _l("Apply id"),
    "create": _l("Added objects"),
    "delete": _l("Deleted objects"),
    "update": _l("Changed objects"),
    "address_list": _l("Addresses"),
    "address_type": _l("Registration"),
    "addresses": _l("Addresses"),
    "access_token": _l("Access token"),
    "afterwards": _l("Afterwards"),
    "agent": _l("Browser"),
    "alarm_urls": _l("Apprise URLs"),
    "answered": _l("Answered"),
    "app_name": "AppName",
    "changeover_ms": _l("Token changeover since"),
    "backfill": _l("Backfill"),
    "characters": _l("Characters"),
    "children": _l("What follows"),
    "count": _l("Further refusals"),
    "cron": _l("Cron"),
    "days_changed": _l("Days changed"),
    "disabled": _l("Disabled"),
    "done": _l("Done"),
    "due_ms": _l("Due"),
    "daily": _l("Daily message"),
    "duration_s": _l("Length"),
    "expires_ms": _l("Expires"),
    "failures": _l("Refused logins"),
    "field": _l("Field"),
    "for_all": _l("For all jobs"),
    "force": _l("Whatever limits and blackouts"),
    "former_token": _l("Former token"),
    "from_ms": _l("From"),
    "glue_remark": _l("Remark"),
    "glue_updatetime": _l("Code changed"),
    "holidays": _l("Holidays"),
    "identity": _l("Identity"),
    "incident": _l("Incident"),
    "job_group": _l("Executor"),
    "job_id": _l("Job"),
    "jobs": _l("Chosen jobs"),
    "groups": _l("Chosen executors"),
    "kind": _l("Kind"),
    "log_ids": _l("Run IDs"),
    "logical_ms": _l("Logical time"),
    "logins": _l("Logins"),
    "method": _l("Request"),
    "name": _l("Name"),
    "node": _l("Node"),
    "on_failure": _l("At a failure"),
    "not_after_ms": _l("Not after"),
    "not_before_ms": _l("Not before"),
    "notice": _l("Notice"),
    "open_runs": _l("Unresolved runs"),
    "origin": _l("Site"),
    "password": _l("Password"),
    "problem": _l("Problem"),
    "path": _l("Page"),
    "permission": _l("Executor groups"),
    "queued": _l("Queued runs that were skipped"),
    "reached": _l("With an answer"),
    "reason": _l("Reason"),
    "remark": _l("Remark"),
    "rights": _l("Rights"),
    "role": _l("Role"),
    "rows": _l("Runs deleted"),
    "runs": _l("Number of runs"),
    "run_order": _l("Order"),
    "schedule_conf": _l("Schedule"),
    "secret": _l("Secret"),
    "settings": _l("Settings"),
    "sha256": "SHA-256",
    "sign_on": _l("Sign-on"),
    "since_ms": _l("Since"),
    "slots": _l("Slots"),
    "source": _l("Applied from"),
    "started": _l("Switched on"),
    "tag": _l("Tag"),
    "tags": _l("Tags"),
    "targets": _l("Targets"),
    "time_zone": _l("Time zone"),
    "title": _l("Title"),
    "to_ms": _l("To"),
    "total": _l("Total"),
    "trigger_next_time": _l("Next run"),
    "unknown": _l("Days after that"),
    "unreached": _l("Without an answer"),
    "trigger_type": _l("Triggered by"),
    "until": _l("Until"),
    "until_ms": _l("Until"),
    "username": _l("User name"),
    "valid_until": _l("Known until"),
    "value": _l("Value"),
    "version": _l("Version"),
    "weekend": _l("Weekend"),
    "which": _l("Which instants"),
    "withdrawn": _l("Withdrawn runs"),
    "workdays": _l("Make-up workdays"),
}
_SECONDS = frozenset(
    {"executor_timeout", "retry_interval_s", "max_wait_s", "duration_s", "misfire_max_age_s"}
)
#: where 0 or nothing is inherited
_INHERITANCE_FIELDS = frozenset({"log_archive", "log_days", "run_days"})
#: where 0 is none
_NONE_IF_0 = frozenset({"executor_timeout", "max_running", "max_wait_s"})
_INSTANTS = frozenset({"due_ms", "trigger_next_time", "glue_updatetime"})
_BOOLEANS = frozenset({"disabled", "started", "sign_on", "for_all", "fill_parameter", "daily", "force"})
#: fields with members -> their words
MEMBER_WORDS = {
    "promises": promises_value,
    "escalation": escalation_value,
    "limits": limits_value,
    "runs_after": runs_after_value,
    "calendar": rule_value,
    "weekend": weekend_value,
}
_LABELS: Mapping[str, Mapping[Any, str]] = {
    "misfire_strategy": labels.MISFIRE_STRATEGIES,
    "executor_route_strategy": labels.ROUTE_STRATEGIES,
    "executor_block_strategy": labels.BLOCK_STRATEGIES,
    "schedule_type": labels.SCHEDULE_TYPES,
    "glue_type": labels.GLUE_TYPES,
    "delivery": labels.DELIVERIES,
    "when_full": labels.WHEN_FULLS,
    "log_archive": labels.LOG_ARCHIVES,
    "unknown": UNKNOWNS,
    "afterwards": {
        "skip": _l("What was due does not run"),
        "run_once": _l("Each schedule that was due runs once"),
    },
    "which": backfill_words.WHICH,
    "run_order": backfill_words.ORDERS,
    "children": backfill_words.CHILDREN,
    "on_failure": backfill_words.ON_FAILURES,
    "role": {0: _l("Normal user"), 1: _l("Administrator")},
    "address_type": {0: _l("automatic"), 1: _l("manual")},
    "kind": {
        TaskKind.BULK: _l("Bulk action"),
        "personal_token": _l("Personal token"),
        "service_token": _l("Service token"),
        **tasks.TITLES,
        **{kind.name: labels.CLEAN_KINDS[kind] for kind in ClearType},
        **{kind: _l(channel_kind.title) for kind, channel_kind in KINDS.items()},
    },
}


def sentence_of(action: str, fields: frozenset[str], *, has_object: bool) -> str:
    """Return the sentence of an entry, ``%(object)s`` in it; an unknown action is its own sentence."""
    if not has_object and action in WITHOUT_OBJECT:
        return str(WITHOUT_OBJECT[action])
    if action == "job.update" and fields:
        for members, text in OF_FIELDS:
            if fields <= members:
                return str(text)
    sentence = SENTENCES.get(part_of(action), {}).get(action)
    return str(sentence) if sentence is not None else action.replace("%", "%%")


def part_of(action: str) -> str:
    """Return the key of an action in ``SENTENCES``."""
    first = action.partition(".")[0]
    return "login" if first == "logout" else first


def field_label(name: str) -> str:
    """Return the label of a field as the forms have it; an unknown one is its own label."""
    if name in FIELD_OF and FIELD_OF[name].label:
        return _(FIELD_OF[name].label)
    if part_of(name) == "refused" or name == "login.refused":
        return sentence_of(name, frozenset(), has_object=False)
    return str(_FIELDS[name]) if name in _FIELDS else labels.target_title(name)


def value_text(name: str, value: Any) -> str:
    """Return a value as the pages show it; an instant is markup."""
    if name in _INHERITANCE_FIELDS and not value:
        return _("inherited")
    if value is None or value == "" or value == [] or value == {}:
        return "–"
    if name in MEMBER_WORDS:
        return MEMBER_WORDS[name](value)
    if value == BLANKED:
        return _("set")
    if name in _INSTANTS or name.endswith("_ms"):
        return _instant_text(value)
    if isinstance(value, bool) or name in _BOOLEANS:
        return _("yes") if value else _("no")
    if name in _NONE_IF_0 and not value:
        return _("none")
    if name == "retry_backoff_percent":
        return f"{value}%"
    if name in _SECONDS:
        return _("%(n)s s", n=value)
    if isinstance(value, list):
        texts = map(str, value)
        return comma_list(map(labels.target_title, texts) if name == "targets" else texts)
    if isinstance(value, dict):
        return comma_list(f"{key}{_(': ')}{item}" for key, item in value.items())
    options = _LABELS.get(name, {})
    return str(options.get(value, value))


def _instant_text(value: Any) -> str:
    if not isinstance(value, int) or value <= 0:
        return "–"
    return next_time_label(value) if value >= RESTING else instant(value, exact=True)
