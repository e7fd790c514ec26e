"""Calendars and blackouts in the pipeline."""
