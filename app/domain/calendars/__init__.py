"""Calendars and blackouts: on which days schedules run, and when they must not."""
