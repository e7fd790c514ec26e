"""Labels of enum values and other fixed choices, in the order of the selects."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from flask import Flask

from app.console.ui.filters import comma_list
from app.console.web.language import _, lazy_pgettext, ngettext
from app.console.web.language import lazy_gettext as _l
from app.domain.access.permissions import Right
from app.domain.alarms.alarm_results import AlarmResult
from app.domain.alarms.muting import MuteSpan
from app.domain.archive.kinds import ArchiveChoice
from app.domain.enums import (
    AlarmReason,
    AlarmState,
    BlockStrategy,
    Delivery,
    GlueType,
    MisfireStrategy,
    RouteStrategy,
    ScheduleType,
    TriggerType,
    WhenFull,
)
from app.domain.jobs.glue_languages import GLUE_LANGUAGES
from app.domain.runs.trace_templates import find_template
from app.domain.schedules.intervals import interval_of
from app.domain.text.texts import N_
from app.models.alarm import Alarm
from app.services.alarms.alarm_list import results_of
from app.services.alarms.targets import displayed
from app.store.runs.listing import LogStatus
from executor_client.wire.capabilities import VERSION_WORD

SCHEDULE_TYPES = {
    ScheduleType.NONE: _l("None"),
    ScheduleType.CRON: _l("Cron"),
    ScheduleType.FIX_RATE: _l("Fixed rate"),
    ScheduleType.FIX_DELAY: _l("Fixed delay"),
    ScheduleType.AT: _l("Once"),
}
MISFIRE_STRATEGIES = {
    MisfireStrategy.DO_NOTHING: _l("Do nothing"),
    MisfireStrategy.FIRE_ONCE_NOW: _l("Run once now"),
    MisfireStrategy.RUN_ALL: _l("Run all, one after the other"),
}
ROUTE_STRATEGIES = {
    RouteStrategy.FIRST: _l("First"),
    RouteStrategy.LAST: _l("Last"),
    RouteStrategy.ROUND: _l("Round robin"),
    RouteStrategy.RANDOM: _l("Random"),
    RouteStrategy.CONSISTENT_HASH: _l("Consistent hash"),
    RouteStrategy.LEAST_FREQUENTLY_USED: _l("Least frequently used"),
    RouteStrategy.LEAST_RECENTLY_USED: _l("Least recently used"),
    RouteStrategy.FAILOVER: _l("Failover"),
    RouteStrategy.BUSYOVER: _l("Busyover"),
    RouteStrategy.SHARDING_BROADCAST: _l("Sharding broadcast"),
}
BLOCK_STRATEGIES = {
    BlockStrategy.SERIAL_EXECUTION: _l("Serial execution"),
    BlockStrategy.DISCARD_LATER: _l("Discard later"),
    BlockStrategy.COVER_EARLY: _l("Cover early"),
}
DELIVERIES = {
    Delivery.AUTO: _l("Automatic: only if the executor cannot run it twice"),
    Delivery.AT_MOST_ONCE: _l("Never (payments, mails)"),
    Delivery.AT_LEAST_ONCE: _l("Always (the job may safely run twice)"),
}
WHEN_FULLS = {
    WhenFull.WAIT: _l("The new run waits"),
    WhenFull.SKIP: _l("The new run is skipped"),
    WhenFull.NEWEST: _l("The new run waits, those that waited are skipped"),
    WhenFull.REPLACE: _l("The run in progress is killed, then the new one starts"),
}
LOG_ARCHIVES = {
    ArchiveChoice.INHERITED: _l("inherited"),
    ArchiveChoice.OFF: _l("of no runs"),
    ArchiveChoice.FAILED: _l("of failed runs"),
    ArchiveChoice.ALL: _l("of all runs"),
}
GLUE_TYPES = {
    GlueType.BEAN: "BEAN",
    **{glue_type: language.title for glue_type, language in GLUE_LANGUAGES.items()},
}
#: enum of a job field -> the labels of its values
LABELS_OF: dict[type[StrEnum], Mapping[Any, str]] = {
    ScheduleType: SCHEDULE_TYPES,
    MisfireStrategy: MISFIRE_STRATEGIES,
    RouteStrategy: ROUTE_STRATEGIES,
    BlockStrategy: BLOCK_STRATEGIES,
    Delivery: DELIVERIES,
    WhenFull: WHEN_FULLS,
    ArchiveChoice: LOG_ARCHIVES,
    GlueType: GLUE_TYPES,
}
TRIGGER_TYPES = {
    TriggerType.CRON: _l("By schedule"),
    TriggerType.MISFIRE: _l("Missed run"),
    TriggerType.MANUAL: _l("By hand"),
    TriggerType.PARENT: _l("Parent job"),
    TriggerType.RETRY: _l("Retry"),
    TriggerType.API: _l("API"),
    TriggerType.AFTER: lazy_pgettext("trigger", "Predecessors"),
    TriggerType.BACKFILL: _l("Backfill"),
}
RIGHTS = {Right.VIEW: _l("View"), Right.OPERATE: _l("Operate"), Right.EDIT: _l("Edit"), Right.GLUE: "GLUE"}
SKIP_REASONS = {
    "misfire": _l("missed, and left out by the misfire strategy"),
    "invalid": _l("the schedule is invalid, so it was switched off"),
    "stopped": _l("the schedule was switched off"),
    "edited": _l("the schedule was changed"),
    "restored": _l("the database was restored from a backup"),
    "lost": _l("the database had lost its last commits"),
    "limit": _l("a limit had no slot for it"),
    "withdrawn": _l("it was withdrawn while it waited"),
    "predecessor": _l("a predecessor did not succeed"),
    "deadline": _l("its predecessors did not end in time"),
    "calendar": _l("not on this day"),
    "blackout": _l("blackout"),
}
ALARM_REASONS = {
    AlarmReason.FAILED: _l("Failed"),
    AlarmReason.UNRESOLVED: _l("Unresolved"),
    AlarmReason.RECOVERED: _l("Recovered"),
}
MUTE_SPANS = {
    MuteSpan.HOUR: _l("1 hour"),
    MuteSpan.EIGHT_HOURS: _l("8 hours"),
    MuteSpan.DAY: _l("24 hours"),
    MuteSpan.TOMORROW: _l("until tomorrow, 8:00"),
    MuteSpan.WEEK: _l("7 days"),
    MuteSpan.UNTIL_UNDONE: _l("no end"),
}
ALARM_STATES = {
    AlarmState.PENDING: _l("waiting"),
    AlarmState.SENDING: _l("sending"),
    AlarmState.SENT: _l("sent"),
    AlarmState.CLOSED: _l("sent, recovered since"),
    AlarmState.FAILED: _l("could not be delivered"),
    AlarmState.PARTLY: _l("not delivered to all targets"),
    AlarmState.SILENT: _l("not sent: no channel configured"),
    AlarmState.MUTED: _l("muted"),
}
#: answers of alarm targets with parameters; stored in English, as they were written
_ANSWERS = (
    N_("the webhook answered with the status %(status)s"),
    N_("the channel refused the message: %(reason)s"),
    N_("the mail server took over %(seconds)s s"),
    N_("no answer in %(seconds)s s"),
)
#: results of the filter of alarms; None: all
ALARM_RESULTS: Mapping[AlarmResult | None, str] = {
    None: _l("All"),
    AlarmResult.SENT: _l("Sent"),
    AlarmResult.FAILED: _l("Failed"),
    AlarmResult.HELD: _l("Held back"),
    AlarmResult.WAITING: _l("Waiting"),
    AlarmResult.SILENT: _l("No channel"),
}
#: abilities that clients announce
CAPABILITIES = {
    "durable-dedup": _l("starts no run twice"),
    "run-state": _l("reports states of runs"),
    "last-lines": _l("returns the end of a log at once"),
    "logical-time": _l("takes logical times"),
}
#: the original's numbers of the log cleaning options
CLEAN_KINDS = {
    1: _l("Older than one month"),
    2: _l("Older than three months"),
    3: _l("Older than six months"),
    4: _l("Older than one year"),
    5: _l("All but the newest 1,000"),
    6: _l("All but the newest 10,000"),
    7: _l("All but the newest 30,000"),
    8: _l("All but the newest 100,000"),
    9: _l("Everything"),
}
#: states of a run to filter by; the first three have the original's numbers
LOG_STATUSES: dict[int, str] = {
    LogStatus.SUCCESS: _l("Succeeded"),
    LogStatus.RUNNING: _l("Running"),
    LogStatus.FAILED: _l("Failed"),
    LogStatus.ONLY_FAILED: _l("Failed in the handler"),
    LogStatus.TIMED_OUT: _l("Timed out"),
    LogStatus.KILLED: _l("Killed"),
    LogStatus.NOT_STARTED: _l("Not started"),
    LogStatus.UNRESOLVED: _l("Unresolved"),
    LogStatus.WAITING: _l("Waiting"),
}
#: time ranges, by their names in addresses
RANGES = {
    "hour": _l("Last hour"),
    "today": _l("Today"),
    "yesterday": _l("Yesterday"),
    "day": _l("Last 24 hours"),
    "week": _l("Last week"),
    "month": _l("Last 30 days"),
    "this_month": _l("This month"),
    "last_month": _l("Last month"),
    "all": _l("All"),
    "custom": _l("From … to …"),
}


def choices(labels: Mapping[Any, str]) -> list[tuple[str, str]]:
    """Return the options of a select in the reader's language."""
    return [(str(value), str(label)) for value, label in labels.items()]


def init_app(app: Flask) -> None:
    """Add a template filter for each set of labels: ``glue_type|glue_title``."""
    filters: dict[str, Mapping[Any, str]] = {
        "glue_title": GLUE_TYPES,
        "schedule_title": SCHEDULE_TYPES,
        "route_title": ROUTE_STRATEGIES,
        "block_title": BLOCK_STRATEGIES,
        "misfire_title": MISFIRE_STRATEGIES,
        "delivery_title": DELIVERIES,
        "when_full_title": WHEN_FULLS,
        "log_archive_title": LOG_ARCHIVES,
        "trigger_title": TRIGGER_TYPES,
        "skip_reason": SKIP_REASONS,
        "alarm_reason": ALARM_REASONS,
    }
    app.add_template_filter(alarm_outcome)
    app.add_template_filter(capabilities)
    app.add_template_filter(client_version)
    app.add_template_filter(alarm_targets)
    app.add_template_filter(interval_words)
    app.add_template_filter(target_title)
    app.add_template_filter(target_name)
    app.add_template_filter(answer_text)
    for name, labels in filters.items():
        app.add_template_filter(_label_filter(labels), name)


def alarm_outcome(alarm: Alarm) -> str:
    """Return the state of an alarm; one that only had mail addresses was not sent for want of a server."""
    if alarm.state == AlarmState.SILENT and alarm_targets(alarm):
        return _("not sent: no mail server")
    if alarm.state == AlarmState.CLOSED and alarm.reason == AlarmReason.RECOVERED:
        return _("sent")
    return _label_filter(ALARM_STATES)(alarm.state)


def alarm_targets(alarm: Alarm) -> list[tuple[str, str]]:
    """Return the targets of an alarm, each with its problem; empty: accepted."""
    return [(name, "" if text == "ok" else answer_text(text)) for name, text in results_of(alarm)]


def answer_text(answer: str) -> str:
    """Return what a target answered in the reader's language; before it may stand a mail address."""
    address, separator, rest = answer.partition(": ")
    if separator and "@" in address and " " not in address:
        return f"{address}{_(': ')}{answer_text(rest)}"
    template = find_template(answer, _ANSWERS)
    return _(template.msgid, **template.values) if template is not None else _(answer)


def as_sentence(text: str) -> str:
    """Return a text with a capital letter, unless it begins with an address."""
    first = text.partition(" ")[0]
    return text if "@" in first or "://" in first else text[:1].upper() + text[1:]


def capabilities(names: str) -> str:
    """Return what a client announces in words, as ``durable-dedup,version=0.1.0``, version first."""
    label, version = _label_filter(CAPABILITIES), client_version(names)
    words = [name for name in names.split(",") if name and not name.startswith(f"{VERSION_WORD}=")]
    return comma_list([*([version] if version else []), *map(label, words)])


def client_version(names: str) -> str:
    """Return the version of a client from what it announces; empty without one."""
    words = dict(name.split("=", 1) for name in names.split(",") if "=" in name)
    return f"{_('Duetime')} {words[VERSION_WORD]}" if VERSION_WORD in words else ""


def target_title(name: str) -> str:
    """Return the name of an alarm target, as services.alarms.targets makes it, in the reader's language."""
    name = displayed(name)
    kind, _space, of = name.partition(" ")
    if kind == "channel":
        return _("channel %(name)s", name=of)
    if kind.isdecimal() and of:
        return _("Apprise URL %(number)s, %(address)s", number=kind, address=of)
    return _("mail %(address)s", address=of) if kind == "mail" else name


def target_name(name: str) -> str:
    """Return the name of an alarm target without its kind: the name of a channel, a mail address."""
    kind, _space, of = displayed(name).partition(" ")
    return of if of and (kind in ("channel", "mail") or kind.isdecimal()) else displayed(name)


def interval_words(kind: str, conf: str | None) -> str:
    """Return ``Every 15 minutes`` or ``15 minutes after each run``; empty for other kinds of schedules."""
    words = {ScheduleType.FIX_RATE.value: _every, ScheduleType.FIX_DELAY.value: _after_each_run}.get(kind)
    if words is None or not (conf and conf.isdecimal()):
        return ""
    return words(*interval_of(int(conf)))


def _every(count: int, unit: str) -> str:
    match unit:
        case "day":
            return ngettext("Every day", "Every %(num)d days", count)
        case "hour":
            return ngettext("Every hour", "Every %(num)d hours", count)
        case "minute":
            return ngettext("Every minute", "Every %(num)d minutes", count)
    return ngettext("Every second", "Every %(num)d seconds", count)


def _after_each_run(count: int, unit: str) -> str:
    match unit:
        case "day":
            return ngettext("%(num)d day after each run", "%(num)d days after each run", count)
        case "hour":
            return ngettext("%(num)d hour after each run", "%(num)d hours after each run", count)
        case "minute":
            return ngettext("%(num)d minute after each run", "%(num)d minutes after each run", count)
    return ngettext("%(num)d second after each run", "%(num)d seconds after each run", count)


def _label_filter(labels: Mapping[Any, str]) -> Callable[[str | None], str]:
    """Return the filter of one set; it shows unknown values of adopted databases unchanged."""

    def label(value: str | None) -> str:
        return str(labels.get(value or "", value or "–"))

    return label
