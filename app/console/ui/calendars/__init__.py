"""Calendars and blackouts, as pages of several areas show them."""
