"""Calendars and blackouts in the pipeline: what a change does to planned fires, and what waits."""
