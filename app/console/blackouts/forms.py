"""Forms of blackouts."""

from collections.abc import Mapping
from types import MappingProxyType
from zoneinfo import ZoneInfo

from wtforms import SelectField, StringField

from app.clock import Millis
from app.console.ui.calendars.blackout_words import AFTERWARDS
from app.console.ui.filters import reader_zone
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.labels import choices
from app.console.ui.lists.ranges import read_local
from app.console.ui.promise_words import UNITS
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.calendars.blackouts import Afterwards
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.calendars.blackouts import BlackoutDraft
from app.store.base.paging import to_id

#: scope of a blackout
ALL, TAG, GROUP, JOB = "all", "tag", "group", "job"
#: how often it is on
ONCE, CRON = "once", "cron"


class BlackoutForm(ConsoleForm):
    """Add a blackout."""

    ORDER = (
        *("scope", "tag", "group", "job", "kind", "cron", "duration", "time_zone"),
        *("from_", "to", "afterwards", "reason"),
    )
    ALIASES: Mapping[str, str] = MappingProxyType(
        {"group_id": "group", "job_id": "job", "duration_s": "duration", "from": "from_"}
    )

    scope = SelectField(_l("For"), validate_choice=False)
    tag = StringField(_l("Tag"))
    group = SelectField(_l("Executor"), validate_choice=False)
    job = StringField(_l("Job"))
    kind = SelectField(_l("How often"), validate_choice=False, default=ONCE)
    cron = StringField(_l("Begins at"))
    duration = StringField(_l("Lasts"), default="2")
    unit = SelectField(_l("Unit of the length"), validate_choice=False, default="h")
    time_zone = StringField(_l("Time zone"))
    from_ = StringField(_l("From"), name="from")
    to = StringField(_l("Until"))
    afterwards = SelectField(_l("Afterwards"), validate_choice=False, default=Afterwards.SKIP.value)
    reason = StringField(_l("Reason"))

    def offer(self, groups: list[tuple[str, str]], *, is_admin: bool) -> None:
        """Fill the selects."""
        many = [(ALL, _("all jobs")), (TAG, _("all jobs with a tag"))] if is_admin else []
        self.scope.choices = [*many, (GROUP, _("the jobs of an executor")), (JOB, _("one job"))]
        self.group.choices = [("", _("Choose an executor")), *groups] if len(groups) > 1 else groups
        self.kind.choices = [(ONCE, _("once")), (CRON, _("recurring, by a cron expression"))]
        self.unit.choices = [("m", _("minutes")), ("h", _("hours")), ("d", _("days"))]
        self.afterwards.choices = choices(AFTERWARDS)

    def draft(self, errors: InputErrors, *, readable_by_java: bool) -> BlackoutDraft:
        """Return what was entered; what cannot be read is collected."""
        local, scope = reader_zone(), self.scope.data or ALL
        recurs = self.kind.data == CRON
        from_ms = to_ms = duration_s = group_id = job_id = None
        with errors:
            from_ms = _instant("from", self.from_.data, local)
        with errors:
            to_ms = _instant("to", self.to.data, local)
        with errors:
            duration_s = self._seconds() if recurs else None
        with errors:
            if recurs and not (self.cron.data or "").strip():
                raise InvalidInput("cron", N_("Enter when the windows begin, such as 0 0 2 ? * SUN"))
        with errors:
            group_id = _row_id("group_id", self.group.data, N_("Choose an executor"), scope == GROUP)
        with errors:
            job_id = _row_id("job_id", self.job.data, N_("Choose a job"), scope == JOB)
        with errors:
            if scope == TAG and not (self.tag.data or "").strip():
                raise InvalidInput("tag", N_("Enter a tag"))
        return BlackoutDraft(
            self.reason.data or "",
            from_ms,
            to_ms,
            (self.cron.data or "").strip() if recurs else "",
            duration_s,
            (self.time_zone.data or "").strip() if recurs else "",
            group_id,
            job_id,
            (self.tag.data or "").strip() if scope == TAG else "",
            self.afterwards.data or "",
            readable_by_java,
        )

    def _seconds(self) -> int:
        text = (self.duration.data or "").strip()
        if not (text.isascii() and text.isdecimal()) or len(text) > 6:
            raise InvalidInput("duration_s", N_('"%(value)s" is not a whole number', value=text[:40]))
        return int(text) * UNITS.get(self.unit.data or "", 1)


class OffForm(ConsoleForm):
    """Switch an executor group off."""

    reason = StringField(_l("Reason"))
    afterwards = SelectField(_l("When it is on again"), validate_choice=False, default=Afterwards.SKIP.value)

    def offer(self) -> None:
        """Fill the select."""
        self.afterwards.choices = choices(AFTERWARDS)


def _instant(field: str, value: str | None, local: ZoneInfo) -> Millis | None:
    text = (value or "").strip()
    if not text:
        return None
    at_ms = read_local(text, local)
    if at_ms is None:
        raise InvalidInput(
            field, N_('"%(value)s" is not a time such as 2030-01-31 08:00:00', value=text[:40])
        )
    return at_ms


def _row_id(field: str, value: str | None, problem: str, is_wanted: bool) -> int | None:
    if not is_wanted:
        return None
    number = to_id(value or "")
    if not number:
        raise InvalidInput(field, problem)
    return number
