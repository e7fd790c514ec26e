"""Folded sections of the job form, and the summary of each while it is closed."""

from collections.abc import Callable

from wtforms.fields.choices import SelectField

from app.console.jobs.form.forms import SECTIONS, JobForm
from app.console.ui.calendars.words import rule_text
from app.console.ui.forms.calendar_fields import calendar_json
from app.console.ui.forms.promise_fields import promises_in
from app.console.ui.forms.runs_after_fields import runs_after_in
from app.console.ui.limits.words import Share
from app.console.ui.promise_words import promise_text
from app.console.ui.rounds.words import parts_of
from app.console.web.current import settings
from app.console.web.language import _, lazy_gettext, ngettext
from app.domain.alarms.mail_addresses import mails_of
from app.domain.jobs.fields import FIELD_OF

TITLES = {
    "calendar": lazy_gettext("Calendar"),
    "after": lazy_gettext("Runs after"),
    "routing": lazy_gettext("Routing, blocking and child jobs"),
    "retries": lazy_gettext("Retries, timeout and redelivery"),
    "limits": lazy_gettext("Limits and waiting"),
    "window": lazy_gettext("Time zone, window and missed runs"),
    "promises": lazy_gettext("Promises"),
    "archive": lazy_gettext("Log archive, and how long runs are kept"),
    "alarms": lazy_gettext("Alarms"),
    "owner": lazy_gettext("Owner and tags"),
}
#: number field -> the text of a value that is not the default
_NUMBERS: dict[str, Callable[[str], str]] = {
    "executor_fail_retry_count": lambda text: ngettext("%(num)d retry", "%(num)d retries", int(text)),
    "retry_interval_s": lambda text: _("delay %(n)s s", n=text),
    "retry_backoff_percent": lambda text: _("backoff %(n)s%%", n=text),
    "executor_timeout": lambda text: _("timeout %(n)s s", n=text),
    "misfire_max": lambda text: _("at most %(n)s missed runs", n=text),
    "misfire_max_age_s": lambda text: _("missed in the last %(n)s s", n=text),
    "max_running": lambda text: _("at most %(n)s at once", n=text),
    "priority": lambda text: _("priority %(n)s", n=text),
    "max_wait_s": lambda text: _("waits %(n)s s at most", n=text),
    "log_days": lambda text: ngettext("logs for %(num)d day", "logs for %(num)d days", int(text)),
    "run_days": lambda text: ngettext("runs for %(num)d day", "runs for %(num)d days", int(text)),
}
#: text field -> the text of its value
_TEXTS: dict[str, Callable[[str], str]] = {
    "child_jobid": lambda text: _("then %(ids)s", ids=text),
    "not_before": lambda text: _("from %(time)s", time=text),
    "not_after": lambda text: _("until %(time)s", time=text),
    "alarm_email": lambda text: mail_note(text) or mail_count(text),
    "limit_key": lambda text: _("for each %(key)s", key=text),
}


def notes(form: JobForm) -> dict[str, str]:
    """Return section -> summary of what differs from the default, such as ``Round robin · 2 retries``."""
    return {name: note(form, name) for name in SECTIONS}


def note(form: JobForm, section: str) -> str:
    """Return what differs from the default in a section."""
    if section == "calendar":
        return rule_text(calendar_json(form))
    if section == "after":
        return _after(form)
    if section == "promises":
        return _promises(form)
    if section == "limits":
        return _limits(form)
    return " · ".join(text for name in SECTIONS[section] if (text := _difference(form, name)))


def _after(form: JobForm) -> str:
    """Return the predecessors, and how the rule differs from that of a new job."""
    value = runs_after_in(form)
    return " · ".join(parts_of(value)) if value is not None else ""


def _promises(form: JobForm) -> str:
    """Return the promises of the job, and that it has an escalation of its own."""
    parts = [promise_text(promise) for promise in promises_in(form)]
    if channel := form.escalation_channel.data:
        parts.append(_("escalation to %(channel)s", channel=channel))
    return " · ".join(parts)


def _limits(form: JobForm) -> str:
    """Return the settings of limits that differ, and the named limits."""
    plain = (name for name in SECTIONS["limits"] if name in FIELD_OF)
    parts = [text for name in plain if (text := _difference(form, name))]
    return " · ".join([*parts, *(share.text for share in _shares(form))])


def _shares(form: JobForm) -> list[Share]:
    rows = [(row.name, (row.field("weight").data or "1").strip()) for row in form.limit_rows if row.name]
    return [Share(name, int(text) if text.isdecimal() else 1) for name, text in rows]


def mail_count(addresses: str) -> str:
    """Return the number of mail addresses in words; empty for none."""
    count = len(mails_of(addresses))
    return ngettext("%(num)d mail address", "%(num)d mail addresses", count) if count else ""


def mail_note(addresses: str) -> str:
    """Return why no mail is sent to the addresses; empty with a mail server, or without addresses."""
    count = len(mails_of(addresses))
    if not count or settings().mail.host:
        return ""
    return ngettext(
        "%(num)d mail address, but XXL_JOB_MAIL_HOST is not set",
        "%(num)d mail addresses, but XXL_JOB_MAIL_HOST is not set",
        count,
    )


def _difference(form: JobForm, name: str) -> str:
    """Return a field's value in words; empty if it is the default."""
    field, job_field = form[name], FIELD_OF.get(name)
    text = (field.data or "").strip()
    if isinstance(field, SelectField) and job_field is not None and job_field.choices is not None:
        default = job_field.default or next(iter(job_field.choices), "")
        labels = {value: label for value, label, *_rest in field.iter_choices()}
        return "" if text in ("", default) else str(labels.get(text, text))
    if name in _NUMBERS:
        is_default = job_field is not None and text in ("", str(job_field.default))
        return "" if is_default or not text.isdecimal() else _NUMBERS[name](text[:10])
    return _TEXTS[name](text) if text and name in _TEXTS else text
