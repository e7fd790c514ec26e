"""Statements on calendars and blackouts."""
