"""Statements on the histories of schedules, on what became of their instants, and on its totals by days."""
