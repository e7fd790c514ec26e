"""Completeness of schedules: accounts of instants, their totals by days, seals and verification."""
