"""Lookup of calendars for the rules of jobs, and the rule book by which their next times are computed."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlalchemy.orm import Session

from app.domain.calendars.calendar import Calendar
from app.domain.calendars.rule_book import CalendarVersion, RuleBook
from app.store.calendars import calendars as store
from app.store.calendars import current_book


class StoredCalendars:
    """Calendars in the database, and those that are about to be written with a job."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._book: RuleBook | None = None
        self._held: dict[str, bool] = {}
        #: name -> calendar that is written before the jobs
        self.new: Mapping[str, Calendar] = {}

    def find(self, name: str) -> Calendar | None:
        """Return the latest version of a calendar, which is protected from deletion."""
        if name in self.new:
            return self.new[name]
        if name not in self._held:
            self._held[name] = store.hold_calendar(self._session, name)
        return self.book().find(name) if self._held[name] else None

    def names(self) -> Collection[str]:
        """Return the names of all calendars."""
        return [*store.list_names(self._session), *self.new]

    def book(self) -> RuleBook:
        """Return the calendars and blackouts that hold in this transaction."""
        if self._book is None:
            book = current_book.refresh(self._session)
            versions = {name: [CalendarVersion(0, calendar)] for name, calendar in self.new.items()}
            self._book = replace(book, calendars={**book.calendars, **versions}) if versions else book
        return self._book
